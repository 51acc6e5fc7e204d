"""A notebook server on the slots of a job: Jupyter at a socket of the job's own, which ends when nobody uses it."""
