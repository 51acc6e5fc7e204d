"""One line that makes trainings of other libraries elastic."""
