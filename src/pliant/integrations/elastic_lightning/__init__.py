"""Lightning's Trainer driven by a `Run`; the same for the packages `lightning` and `pytorch_lightning`.

`strategy` is what a person gives to the Trainer; it puts `fit_loop` in the place of Lightning's own. That one goes
through epochs, `step` through one optimizer step of all tasks, and `shared` is what Lightning keeps besides the model.

Nothing here imports Lightning by name: every module is given the package that the Trainer comes from.
"""
