"""Templates, models and their trainings."""
