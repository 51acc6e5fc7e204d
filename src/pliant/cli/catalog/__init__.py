"""The verbs on data sets, environments, templates, models and trainings."""
