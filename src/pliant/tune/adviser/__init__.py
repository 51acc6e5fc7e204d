"""What chooses the values of trials, in a process of its own; the only room that imports Optuna."""
