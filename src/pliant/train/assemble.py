"""Puts a training together from what the person said and where it runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from pliant.core.link import Note
from pliant.train.audit import Audit
from pliant.train.checks import Unchanged, check, trained, unwrapped
from pliant.train.claim import Standing, Watch, be_deterministic, fingerprint
from pliant.train.context import Surroundings
from pliant.train.data.feed import Feed, open_feed
from pliant.train.data.sharding import Plan
from pliant.train.engine import NUM_PLEDGE_SLOTS, Engine, Shared
from pliant.train.errors import TrainingError
from pliant.train.loop import Loop
from pliant.train.optimize import Stepper, named
from pliant.train.options import Options
from pliant.train.process import load_weights
from pliant.train.results import Results
from pliant.train.sum.reducer import Reducer
from pliant.train.sum.running import Running
from pliant.train.sum.totals import NUM_ELEMENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The parts of a training, put together."""

    loop: Loop
    results: Results
    unchanged: Unchanged


def assemble(options: Options, around: Surroundings, after_commit: Callable[[Sequence[float]], None]) -> Assembly:
    """Check the arguments and build everything that a training is made of.

    Raises:
        TrainingError: these arguments cannot be trained; the message says what to change.
    """
    model, optimizers = unwrapped(options.model), named(options.optimizers)
    feed = _open_feed(options)
    around.cleanups.append(feed.close)
    plan = _plan(options, around, feed)
    check(model, optimizers, plan)
    unchanged = Unchanged(model)
    feed.bind(plan)
    stepper = _stepper(options, model, optimizers)
    shared = Shared(
        model=model,
        optimizers=optimizers,
        extras={**stepper.extras(), **(options.state or {})},
        identity={"seed": options.seed, "num_samples": plan.num_samples, "batch_size": plan.batch_size},
        standing=_stand(plan, around, stepper.parameters[0].device),
    )
    if around.weights is not None:
        load_weights(model, around.weights)
    results = _results(options, around, shared)
    running = Running(model)
    engine = Engine(
        session=around.session,
        shared=shared,
        plan=plan,
        stepper=stepper,
        reducer=Reducer(stepper.parameters, num_control=NUM_PLEDGE_SLOTS + NUM_ELEMENTS, running=running),
        running=running,
        audit=_audit(around),
        clock=around.clock,
        find_checkpoint=results.newest,
        after_commit=after_commit,
        save=results.checkpoint_now,
    )
    around.cleanups += [results.close, engine.audit.close, engine.reducer.close]
    return Assembly(loop=Loop(engine=engine, feed=feed, seed=options.seed), results=results, unchanged=unchanged)


def _open_feed(options: Options) -> Feed:
    return open_feed(
        options.data,
        batch_size=options.batch_size,
        seed=options.seed,
        shuffle=options.shuffle,
        order=options.order,
        collate_fn=options.collate_fn,
        num_workers=options.num_workers,
        prefetch_factor=options.prefetch_factor,
        pin_memory=options.pin_memory,
        worker_init_fn=options.worker_init_fn,
        num_samples=options.num_samples,
    )


def _plan(options: Options, around: Surroundings, feed: Feed) -> Plan:
    batch_size = feed.batch_size if options.batch_size is None else options.batch_size
    if batch_size is None:
        raise TrainingError("give batch_size: the samples per optimizer step, over all workers together")
    return Plan(
        num_samples=feed.num_samples,
        batch_size=batch_size,
        virtual_workers=options.virtual_workers or around.virtual_workers or 1,
        whole_shares=(options.mode or around.mode) == "fast",
        accumulate=options.accumulate,
    )


def _stepper(options: Options, model: torch.nn.Module, optimizers: Mapping[str, torch.optim.Optimizer]) -> Stepper:
    return Stepper(
        parameters=trained(model),
        optimizers=optimizers,
        schedulers=options.schedulers,
        scaler=options.scaler,
        clip_norm=options.clip_norm,
        clip_value=options.clip_value,
        before_step=options.before_step,
        after_step=options.after_step,
    )


def _stand(plan: Plan, around: Surroundings, device: torch.device) -> Standing:
    if plan.whole_shares:
        return Standing("fast", fingerprint(device))
    be_deterministic()
    standing = Standing("exact", f"{fingerprint(device)}; {plan.virtual_workers} virtual workers")
    around.cleanups.append(Watch(standing).close)
    return standing


def _results(options: Options, around: Surroundings, shared: Shared) -> Results:
    return Results(
        folder=around.result_dir,
        shared=shared,
        send=around.session.send,
        clock=around.clock,
        freq=around.checkpoint_freq if options.checkpoint_freq is None else options.checkpoint_freq,
        save=options.save,
        every_s=around.checkpoint_every_s,
        memory_folder=around.memory_dir if around.checkpoint_every_s else None,
        resume_from=around.resume_from,
        kept_after_end=not around.alone,
    )


def _audit(around: Surroundings) -> Audit:
    wanted = around.audit and around.result_dir is not None
    path = around.result_dir / "audit" / f"{around.session.task_id}.jsonl" if wanted and around.result_dir else None
    return Audit(path, note=lambda text: around.session.send(Note(message=text)))
