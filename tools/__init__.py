"""Commands for those who work on the project: sweeps, tables, the release's checkpoints."""
