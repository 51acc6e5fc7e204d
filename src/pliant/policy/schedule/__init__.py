"""The scheduler: who gets how many slots, on which nodes, and why. `plan.plan` is the only way in."""
