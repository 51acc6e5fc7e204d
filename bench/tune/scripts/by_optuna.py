"""Trials of one step that Optuna chooses, each in a process of its own: `by_optuna.py FOLDER NUM_TRIALS`.

For trial 3 FOLDER gets `3.asked` when its values are chosen, and `3` when it has trained.
"""

import subprocess
import sys
import time
from pathlib import Path

import optuna

TRIAL = Path(__file__).with_name("trial.py")


def main() -> None:
    """Run the trials, one after the other."""
    folder, num_trials = Path(sys.argv[1]), int(sys.argv[2])
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db", sampler=optuna.samplers.RandomSampler(seed=1))
    for number in range(num_trials):
        (folder / f"{number}.asked").write_text(repr(time.time()))
        trial = study.ask()
        lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
        subprocess.run([sys.executable, TRIAL, "plain", folder / str(number), f"--lr={lr}"], check=True)
        study.tell(trial, 0.0)


if __name__ == "__main__":
    main()
