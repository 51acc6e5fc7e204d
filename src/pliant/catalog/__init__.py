"""What trainings are made of and leave behind: data sets, environments, templates, models and their trainings."""
