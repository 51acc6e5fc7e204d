"""The use cases of trainings: start, list, show, stop, remove, and hand out weights and code.

A training is named before its job is submitted, so that a name stands for one job and never for two. All that it runs
with is copied then: nothing that happens to the template, the model or another job later changes it.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Final

from pliant.catalog.models.code_archive import CodeArchives
from pliant.catalog.models.model import Model
from pliant.catalog.models.models import ModelCatalog
from pliant.catalog.models.ports import Ports
from pliant.catalog.models.training import Training, key_of
from pliant.catalog.models.weights import InitialWeights, WeightsFile, open_weights
from pliant.catalog.sharing import require_owner, take_page
from pliant.core.access import Principal
from pliant.core.errors import Conflict, InvalidInput, NotFound, Problem
from pliant.core.job import Job, JobSpec
from pliant.core.model import Origin, WeightsSource
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.files.content_store import CODE, WEIGHTS, ContentStore
from pliant.files.untrusted.opening import OpenFile, hollowness, is_file, take_file
from pliant.files.untrusted.path import UntrustedPath

_PREFIX: Final = "training-"
_PAGE: Final = 200


class Trainings:
    """All trainings. Safe to call from any thread."""

    def __init__(
        self,
        *,
        registry: Registry,
        models: ModelCatalog,
        archives: CodeArchives,
        contents: ContentStore,
        ports: Ports,
        lock: RLock,
    ) -> None:
        self._registry = registry
        self._models = models
        self._archives = archives
        self._contents = contents
        self._ports = ports
        self._initial_weights = InitialWeights(jobs=ports.jobs, get=lambda *which: self.get(*which).noun)
        self._lock = lock  # of templates and models, too: code that is being packed stays until it is

    def page(
        self, caller: Principal, model: str, after: str, limit: int
    ) -> tuple[tuple[Kept[Training], ...], str | None]:
        """Return trainings of a model that somebody sees, and the title of the last if there are more.

        A model that was removed may have left some.

        Raises:
            NotFound: there is neither such a model nor a training of one that they see.
        """
        shared = self._sees_model(caller, model)
        found = iterate_nouns(self._registry, Training, after=key_of(model, after), prefix=key_of(model, ""))
        page, last = take_page(found, lambda one: shared or caller.sees(one.owner), limit)
        if not (page or shared or after):
            self._models.get(caller, model)
        return page, None if last is None else page[-1].noun.title

    def newest(
        self, caller: Principal, before: tuple[float, str] | None, limit: int
    ) -> tuple[tuple[Kept[Training], ...], tuple[float, str] | None]:
        """Return trainings of all models that somebody sees, the newest first, and where the next page begins.

        Args:
            caller: who asks.
            before: what was returned with the page before; None: the first page.
            limit: so many at most.
        """
        page: list[Kept[Training]] = []
        shared: dict[str, bool] = {}
        while found := self._registry.newest(Training, before=before, limit=_PAGE):
            for kept in found:
                before = kept.created_at, kept.noun.name
                model = kept.noun.model
                if not caller.sees(kept.noun.owner) and not shared.setdefault(model, self._sees_model(caller, model)):
                    continue
                page.append(kept)
                if len(page) == limit:
                    return tuple(page), before
        return tuple(page), None

    def get(self, caller: Principal, model: str, title: str) -> Kept[Training]:
        """Return a training.

        Raises:
            NotFound: none that they see.
        """
        kept = self._registry.get(Training, key_of(model, title))
        if kept is None or not (caller.sees(kept.noun.owner) or self._sees_model(caller, model)):
            raise NotFound(f"the model {model!r:.80} has no training {title!r:.80}; list them to see which it has")
        return kept

    def job(self, training: Training) -> Job | None:
        """Return the job of a training; None if it is not there (any more)."""
        return self._ports.jobs.find(training.job_id) if training.job_id else None

    def start(
        self,
        caller: Principal,
        model: str,
        changes: Mapping[str, Any],
        *,
        name: str | None = None,
        weights: WeightsSource | None = None,
        uploaded: Path | None = None,
    ) -> Kept[Training]:
        """Start a training of a model as it is with some changes, which count for this training only.

        Args:
            name: the first of `training-1`, `training-2`, … that is above all others if left out.
            weights: those to start from.
            uploaded: or a file with them.

        Raises:
            NotFound: there is no such model that they see.
            InvalidInput: with everything that is wrong with what was asked for.
            Conflict: there is a training of that name.
            Unavailable: the server is going down, or its disk cannot take the files.
        """
        with self._lock:
            ran, checksum, found = self._check(caller, model, changes, weights, uploaded)
            training = Training(
                name=key_of(model, name or ""),
                owner=caller.name,
                ran=ran,
                code_hash="",
                dataset_checksum=checksum,
                created_at=self._ports.now(),
            )
            kept = self._reserve(training, found)
        try:
            origin = kept.noun.origin
            first = None if origin is None else self._contents.path(origin.checksum, WEIGHTS)
            spec = job_spec(ran, kept.noun.title, first, args=self._archives.args(ran))
            job = self._ports.jobs.submit(spec, self._archives.path(kept.noun.code_hash), caller)
        except BaseException:
            with self._lock:
                self._registry.remove(Training, kept.noun.name)
                self._release(kept.noun)
            raise
        return self._registry.replace(replace(kept.noun, job_id=job.id), at=self._ports.now())

    def stop(self, caller: Principal, model: str, title: str) -> Kept[Training]:
        """End a training at its next step boundary.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Conflict: it has ended.
        """
        kept = self.get(caller, model, title)
        require_owner(caller, kept.noun, f"the training {title!r} of {model!r}")
        if self.job(kept.noun) is None:
            raise Conflict(f"the training {title!r} of {model!r} has no job any more; it does not run")
        self._ports.jobs.stop(kept.noun.job_id, caller)
        return kept

    def remove(self, caller: Principal, model: str, title: str, revision: int | None = None) -> None:
        """Forget a training; its job stays a job like any other.

        Raises:
            NotFound, Forbidden: as for `stop`.
            Conflict: it runs, or is being started.
            Stale: it is not at `revision` any more.
        """
        kept = self.get(caller, model, title)
        require_owner(caller, kept.noun, f"the training {title!r} of {model!r}")
        job = self.job(kept.noun)
        if not kept.noun.job_id or (job is not None and not job.ended):
            state = "is being started" if job is None else f"runs as {job.id}"
            raise Conflict(f"the training {title!r} of {model!r} {state}; stop it first, or wait for its end")
        with self._lock:
            self._registry.remove(Training, kept.noun.name, revision=revision)
            self._release(kept.noun)

    def weights(self, training: Training) -> UntrustedPath | None:
        """Return the file with the trained weights; None if there is none yet, none any more, or something else."""
        path = self._ports.jobs.weights(training.job_id) if training.job_id else None
        return path if path is not None and is_file(path) else None

    def open_weights(self, training: Training) -> OpenFile:
        """Return the trained weights, opened to be sent; who calls this closes them.

        Raises:
            NotFound: there are none (any more), or something else lies in their place.
        """
        job = self.job(training)
        why = "its job is gone" if job is None else f"its job {job.id} is {job.state.value}"
        try:
            file = take_file(self._ports.jobs.weights(training.job_id))
        except FileNotFoundError as error:
            raise _no_weights(training, why) from error
        except OSError as error:
            raise _no_weights(training, error.strerror or str(error)) from error
        if too_hollow := hollowness(file.facts):
            file.close()
            raise _no_weights(training, too_hollow)
        return file

    def code(self, training: Training) -> Path | None:
        """Return the archive (tar.gz) of the code and the parameters that a training ran; None if it was lost."""
        path = self._archives.path(training.code_hash)
        return path if path.is_file() else None

    def job_ids(self) -> frozenset[str]:
        """Return the jobs of all trainings."""
        return frozenset(self.titles())

    def titles(self) -> dict[str, str]:
        """Return what the trainings of all jobs are called, with their models: `'first' of the model 'digits'`."""
        trainings = (kept.noun for kept in iterate_nouns(self._registry, Training))
        return {one.job_id: f"{one.title!r} of the model {one.ran.name!r}" for one in trainings if one.job_id}

    def is_of_training(self, job_id: str) -> bool:
        """Tell whether a job is that of a training."""
        return job_id in self.job_ids()

    def clean(self) -> None:
        """Forget what a server that was killed has left of trainings that it was starting; call before any is."""
        used = set()
        for kept in iterate_nouns(self._registry, Training):
            if kept.noun.job_id:
                used |= _files_of(kept.noun)
            else:
                self._registry.remove(Training, kept.noun.name)
        self._contents.sweep(used)

    def _check(
        self,
        caller: Principal,
        model: str,
        changes: Mapping[str, Any],
        weights: WeightsSource | None,
        uploaded: Path | None,
    ) -> tuple[Model, str, WeightsFile | None]:
        """Return the model as it shall be trained, the checksum of its data and the weights that it starts from."""
        problems: list[Problem] = []
        found: WeightsFile | None = None
        try:
            found = self._initial_weights.find(caller, model, weights, uploaded)
        except InvalidInput as error:
            problems += error.problems
        try:
            ran, checksum = self._models.for_training(caller, model, changes)
        except InvalidInput as error:
            raise InvalidInput(*error.problems, *problems) from error
        if problems:
            raise InvalidInput(*problems)
        return ran, checksum, found

    def _reserve(self, training: Training, found: WeightsFile | None) -> Kept[Training]:
        """Keep code, weights and name of a training that has no job yet, or nothing of it."""
        try:
            if found is not None:
                with open_weights(found) as file:
                    checksum = self._contents.copy_in(file, WEIGHTS)
                training = replace(training, origin=Origin(source=found.source, checksum=checksum))
            training = replace(training, code_hash=self._archives.pack(training.ran))
            if not training.title:
                training = replace(training, name=key_of(training.model, self._next_title(training.model)))
            return self._registry.add(training, at=training.created_at)
        except BaseException:
            self._release(training)
            raise

    def _next_title(self, model: str) -> str:
        kept = iterate_nouns(self._registry, Training, prefix=key_of(model, ""))
        return f"{_PREFIX}{max((_number_of(one.noun.title) for one in kept), default=0) + 1}"

    def _sees_model(self, caller: Principal, model: str) -> bool:
        try:
            self._models.get(caller, model)
        except NotFound:
            return False
        return True

    def _release(self, gone: Training) -> None:
        """Remove the files of a training that no other one has."""
        used = {name for kept in iterate_nouns(self._registry, Training) for name in _files_of(kept.noun)}
        self._contents.remove(_files_of(gone) - used)


def job_spec(ran: Model, title: str, weights: Path | None, *, args: tuple[str, ...] = ()) -> JobSpec:
    """Return the job that trains a model."""
    distributed = ran.engine == "distributed"
    return JobSpec(
        name=f"{ran.name}.{title}",
        script=ran.template.script_of(ran.engine),
        args=args,
        min_tasks=ran.max_workers if distributed else 1,
        max_tasks=ran.max_workers,
        fixed=distributed,
        # where the batch is that of all workers, V is chosen by it
        virtual_workers=ran.max_workers if distributed or ran.batch_is_per_worker else None,
        slots_per_task=ran.slots_per_worker,
        priority=ran.priority,
        queue=ran.queue,
        environment=ran.environment,
        dataset=ran.dataset,
        data_dir=ran.data_dir,
        histograms_every=ran.histograms_every,
        weights=None if weights is None else str(weights),
    )


def _no_weights(training: Training, why: str) -> NotFound:
    return NotFound(f"the training {training.title!r} of {training.model!r} has no weights: {why}")


def _files_of(training: Training) -> set[str]:
    """Return the names of the files that are kept for a training."""
    weights = {f"{training.origin.checksum}{WEIGHTS}"} if training.origin is not None else set()
    return weights | ({f"{training.code_hash}{CODE}"} if training.code_hash else set())


def _number_of(title: str) -> int:
    number = title.removeprefix(_PREFIX)
    return int(number) if title.startswith(_PREFIX) and number.isascii() and number.isdigit() else 0
