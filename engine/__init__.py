"""The parts that all tasks share: runs, training, evaluation, export."""
