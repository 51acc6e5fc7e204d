"""One file per process: settings, clock, signals and wiring enter here and nowhere else."""
