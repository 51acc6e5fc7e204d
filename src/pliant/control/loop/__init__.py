"""The one thread that decides: it takes in what has happened, asks the scheduler, and carries out the plan."""
