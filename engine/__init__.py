"""What holds for every task: runs, training, evaluation, export."""
