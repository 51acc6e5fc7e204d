"""The state of a training as a tree, in memory and in checkpoints."""
