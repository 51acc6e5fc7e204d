"""One elastic training: who trains with whom, what its losses mean, and how its virtual workers divide over tasks."""
