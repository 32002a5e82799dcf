"""Flags and exit codes, files, the machine."""
