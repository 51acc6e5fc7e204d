"""Trials of one step under Ray Tune, one at a time: `by_ray.py FOLDER NUM_TRIALS actors|reused`.

For trial 3 FOLDER gets `3.asked` when its values are chosen, and `3` when it has trained. A trial is an actor, a
process of its own, unless `reused`.
"""

import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.search import Searcher


class Chooser(Searcher):  # type: ignore[misc]  # Ray is not in the environment of mypy
    """Chooses nothing, and notes when it was asked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(metric="loss", mode="min")
        self._folder = folder
        self._number = 0

    def suggest(self, *_trial_id: str) -> dict[str, Any]:
        """Return where a trial notes its times."""
        file = self._folder / str(self._number)
        self._number += 1
        file.with_suffix(".asked").write_text(repr(time.time()))
        return {"file": str(file)}

    def on_trial_complete(self, *_given: Any, **_named: Any) -> None:
        """Learn nothing."""

    def save(self, *_path: str) -> None:
        """Keep nothing."""

    def restore(self, *_path: str) -> None:
        """Keep nothing."""


def train(config: dict[str, Any]) -> None:
    """Train one step: what an actor of Ray Tune runs."""
    import torch  # in the actor: a trial's first line is after this

    began_at = time.time()
    torch.set_num_threads(1)
    from bench.tune.scripts.trial import by_hand

    by_hand(Path(config["file"]), began_at)
    tune.report({"loss": 0.0})


def main() -> None:
    """Run the trials."""
    folder, num_trials, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=150 << 20,
        _node_ip_address="127.0.0.1",
        _temp_dir=str(folder / "r"),
    )
    settings = tune.TuneConfig(
        search_alg=Chooser(folder), num_samples=num_trials, max_concurrent_trials=1, reuse_actors=how == "reused"
    )
    tune.Tuner(train, tune_config=settings, run_config=tune.RunConfig(storage_path=str(folder / "s"), verbose=0)).fit()


if __name__ == "__main__":
    main()
