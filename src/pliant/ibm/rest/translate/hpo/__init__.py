"""IBM's hyperparameter searches (HPO tasks) as Pliant's searches, and back."""
