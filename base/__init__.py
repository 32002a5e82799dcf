"""What everything stands on: flags and exit codes, files, the machine."""
