"""The ground floor: flags and exit codes, files, the machine."""
