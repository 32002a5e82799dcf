"""Commands for contributors: sweeps, tables, publishing, import of the release's checkpoints."""
