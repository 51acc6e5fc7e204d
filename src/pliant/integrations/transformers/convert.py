"""`elastic`: gives a Trainer a class of its own, in which Pliant's loop trains and the leader alone writes.

The class comes before the Trainer's own, so what that overrides (`compute_loss`, `evaluate`, `log`) is called as ever.
"""

import os
from typing import Any, TypeVar

from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import TrainOutput, rotate_checkpoints

from pliant.integrations.transformers.loop import ElasticLoop
from pliant.integrations.transformers.refusals import check_elastic
from pliant.integrations.transformers.saving import checkpoint_folder, draft_in, put_in_place
from pliant.train import TrainingError
from pliant.train.context import find_context
from transformers import Trainer

AnyTrainer = TypeVar("AnyTrainer")
_KNOWN_SERIES = frozenset({"loss", "epoch", "step"})
"""What the job's series and progress have already."""
_Base: Any = object


def elastic(trainer: AnyTrainer) -> AnyTrainer:
    """Make a Hugging Face `Trainer` elastic, and return it: `trainer.train()` then trains with any number of tasks.

    Alone it trains with one worker and without a server, to the same bits. A relative `output_dir` is taken to lie in
    `RESULT_DIR`, where there is one.

    Raises:
        TrainingError: it is no Trainer, or one that cannot be elastic; the message names the arguments.
    """
    given: Any = trainer
    if not isinstance(given, Trainer):
        raise TrainingError(
            f"elastic() got a {type(given).__name__}; give it a transformers.Trainer: elastic(Trainer(model=..., ...))"
        )
    if isinstance(given, ElasticTrainer):
        return trainer
    check_elastic(given)
    given.args._n_gpu = min(1, given.args.n_gpu)  # a task has one; DataParallel would cut batches once more
    given._train_batch_size = given.args.train_batch_size
    context = find_context()
    if context.result_dir is not None and not os.path.isabs(given.args.output_dir):
        given.args.output_dir = str(context.result_dir / given.args.output_dir)
    cls = type(given)
    given.__class__ = type(f"Elastic{cls.__name__}", (ElasticTrainer, cls), {"__module__": cls.__module__})
    given._elastic_loop = given._draft = None
    given._is_managed = not context.standalone
    return trainer


class ElasticTrainer(_Base):  # type: ignore[misc]  # what it overrides is of the Trainer that it is mixed into
    """A Trainer whose loop is a Run's."""

    _elastic_loop: ElasticLoop | None
    _draft: str | None
    """Where a `checkpoint-N` is being written, until it is whole."""
    _is_managed: bool
    """A server may run more tasks beside this one."""

    def train(
        self,
        resume_from_checkpoint: str | bool | None = None,
        trial: Any = None,
        ignore_keys_for_eval: list[str] | None = None,
        **others: Any,
    ) -> TrainOutput:
        """Train as `Trainer.train` does. A job goes on from Pliant's own newest checkpoint, whatever is said here.

        Raises:
            TrainingError: a checkpoint is named, and there is none of Pliant's own; or this is a trial.
        """
        if trial is not None:
            raise TrainingError("trial: an elastic Trainer plays no trial of hyperparameter_search; submit an array")
        self._resume_asked = resume_from_checkpoint
        return super().train(None, None, ignore_keys_for_eval, **others)

    def _inner_training_loop(
        self, *_args: Any, ignore_keys_for_eval: list[str] | None = None, **_kwargs: Any
    ) -> TrainOutput:
        self._elastic_loop = ElasticLoop(
            self, ignore_keys=ignore_keys_for_eval, resume_asked=self._resume_asked, is_managed=self._is_managed
        )
        return self._elastic_loop.train()

    def hyperparameter_search(self, *_args: Any, **_kwargs: Any) -> Any:
        """Refuse: a search trains again and again, and one job is one training.

        Raises:
            TrainingError: always.
        """
        raise TrainingError(
            "hyperparameter_search trains again and again, and one job is one training; submit an array of jobs"
        )

    # -- once, by the leader --------------------------------------------------------------------------------------

    @property
    def _leads(self) -> bool:
        loop = self._elastic_loop
        return not self._is_managed if loop is None else loop.leads

    def is_world_process_zero(self) -> bool:
        """Tell whether this is the task that writes and reports."""
        return self._leads

    def is_local_process_zero(self) -> bool:
        """Tell the same: one task of all writes."""
        return self._leads

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save as `Trainer.save_model` does, in the task that leads; the others do nothing."""
        if self._leads:
            super().save_model(output_dir, _internal_call)

    def push_to_hub(self, *args: Any, **kwargs: Any) -> Any:
        """Push as `Trainer.push_to_hub` does, in the task that leads; the others return None."""
        return super().push_to_hub(*args, **kwargs) if self._leads else None

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Note in every task which checkpoint is the best one; write it in the task that leads, whole or not at all."""
        assert self._elastic_loop is not None
        self._elastic_loop.note_saving()
        state, output_dir = self.state, self.args.output_dir
        place = checkpoint_folder(output_dir, state.global_step)
        if state.best_global_step == state.global_step:
            state.best_model_checkpoint = place
        if not self._leads:
            return
        best = state.best_model_checkpoint
        with draft_in(output_dir) as draft:
            self._draft = draft
            try:
                super()._save_checkpoint(model, trial)
            finally:
                self._draft = None
            state.best_model_checkpoint = best  # the Trainer has named the draft
            made = checkpoint_folder(draft, state.global_step)
            state.save_to_json(os.path.join(made, TRAINER_STATE_NAME))
            put_in_place(made, place)
        if self.args.push_to_hub:
            self._push_from_checkpoint(place)
        rotate_checkpoints(output_dir, self.args.save_total_limit, best, use_mtime=True)

    def _get_output_dir(self, trial: Any) -> str:
        found: str = super()._get_output_dir(trial) if self._draft is None else self._draft
        return found

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        if self._draft is None:  # else it is pushed once it is in its place
            super()._push_from_checkpoint(checkpoint_folder)

    def log(self, logs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Log as `Trainer.log` does, and into the job's series."""
        super().log(logs, *args, **kwargs)
        if self._elastic_loop is not None:
            values = {name: value for name, value in logs.items() if name not in _KNOWN_SERIES}
            self._elastic_loop.report({name: float(one) for name, one in values.items() if not isinstance(one, str)})
