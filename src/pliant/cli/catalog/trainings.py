"""The commands `train` and `trainings`: start a training of a model, list them, show one, fetch what it left."""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from pliant.api.models import TrainingPage, TrainingRequest, TrainingView, WeightsFrom
from pliant.cli import formatting
from pliant.cli.catalog.models import ASSIGNMENTS, TRAINING, facts_of, with_assignments
from pliant.cli.fields import Given, Table, ask, options_of, takes
from pliant.cli.follow import follow_to_end, print_end
from pliant.cli.options import FollowOption, JsonOption, WaitOption, name_argument
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, say, show_facts, show_list, state_text
from pliant.cli.session import open_client
from pliant.client import Client
from pliant.client.http.pages import pages
from pliant.core.lifecycle import JobState
from pliant.core.model import TrainingSettings

ModelArgument = Annotated[str, name_argument("model", "Name of a model.", metavar="MODEL")]

_TRAINING: Final[Table] = {
    "name": ask("Of the training.", type=str),
    "assignments": ASSIGNMENTS,
    "weights": ask(
        "Start from a training's weights (MODEL/TRAINING: another model's), a job's or a file's.",
        metavar="TRAINING|JOB|FILE",
        type=str,
    ),
    **TRAINING,
}

_COLUMNS = (
    TableColumn(title="TRAINING"),
    TableColumn(title="JOB"),
    TableColumn(title="STATE"),
    TableColumn(title="ENGINE", optional=True),
    TableColumn(title="EPOCH", right=True),
    TableColumn(title="LOSS", right=True),
    TableColumn(title="WEIGHTS"),
    TableColumn(title="FROM", optional=True),
    TableColumn(title="STARTED", optional=True),
)


@takes(options_of(TrainingSettings, _TRAINING, but=("data_dir",)))
def train(
    context: typer.Context,
    model: ModelArgument,
    given: Given,
    follow: FollowOption = False,
    wait: WaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model.

    What is given here counts for this training only.

    \b
    pliant train flowers --max 4 --set epochs=20
    pliant train flowers --name fine --weights training-1 --set learning_rate=0.0001
    """
    with open_client(context) as client:
        present = client.models.get(model).settings.parameters if "assignments" in given else {}
        file, origin = _weights_of(given.pop("weights", None))
        asked = with_assignments(given, present) | ({} if origin is None else {"weights": origin})
        view = client.models.train(model, validate(TrainingRequest, asked), weights=file)
        _print_started(client, view, follow=follow, wait=wait, as_json=as_json)


def trainings(
    context: typer.Context,
    model: ModelArgument,
    training: Annotated[
        str | None, typer.Argument(metavar="TRAINING", help="Show this one.", show_default=False)
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Fetch its weights into this file.", show_default=False)
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Fetch the code that ran into a new folder.", show_default=False),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget it; its job stays.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the trainings of a model, or show one.

    A model that was removed may have left some.

    \b
    pliant trainings flowers
    pliant trainings flowers training-1 --weights flowers.pt --code ran/
    """
    with open_client(context) as client:
        if training is None:
            if weights or code or remove:
                raise typer.BadParameter("name the training that is meant", param_hint="TRAINING")
            _list(client, model, as_json=as_json)
            return
        view = client.models.training(model, training)
        if weights is not None:
            client.models.weights(model, training, weights.expanduser().absolute())
        if code is not None:
            client.models.code(model, training, code.expanduser().absolute())
        if remove:
            client.models.forget(model, training)
    if as_json:
        print_json(view)
    elif weights is None and code is None and not remove:
        show_facts(_facts(view))
    else:
        done = {"its weights are in": weights, "its code is in": code}
        parts = [f"{done_with} {path}" for done_with, path in done.items() if path is not None]
        say(f"{model}/{training}: {'; '.join([*parts, *(['it is forgotten'] if remove else [])])}")


def _weights_of(given: str | None) -> tuple[Path | None, WeightsFrom | None]:
    """Return the file of first weights that is here, or whose weights the server shall take."""
    if given is None:
        return None, None
    path = Path(given).expanduser()
    if path.is_file():
        return path, None
    if given.startswith("job-"):
        return None, WeightsFrom(job=given)
    model, _, training = given.rpartition("/")
    return None, validate(WeightsFrom, {"training": training, **({"model": model} if model else {})})


def _print_started(client: Client, view: TrainingView, *, follow: bool, wait: bool, as_json: bool) -> None:
    label = f"{view.model}/{view.name}"
    said = f"{label} is {view.job_id}"
    ended = follow_to_end(client, view.job_id, said, view, follow=follow, wait=wait, as_json=as_json)
    if ended is not None:
        if as_json:
            print_json(client.models.training(view.model, view.name))
        print_end(label, ended)


def _list(client: Client, model: str, *, as_json: bool) -> None:
    asked = pages(lambda after: client.models.trainings(model, after=after))
    found = tuple(view for page in asked for view in page.trainings)
    nothing = f"{model} was not trained yet; `pliant train {model}` does it."
    show_list(TrainingPage(trainings=found, next=None), _COLUMNS, map(_row, found), nothing, as_json=as_json)


def _row(view: TrainingView) -> list[str | Text]:
    return [
        view.name,
        view.job_id or formatting.NOTHING,
        _state(view),
        view.settings.engine,
        formatting.epochs(view.progress),
        formatting.loss(view.progress),
        "yes" if view.has_weights else formatting.NOTHING,
        formatting.NOTHING if view.weights_from is None else view.weights_from.source,
        formatting.date_time(view.created_at),
    ]


def _state(view: TrainingView) -> Text:
    return state_text(JobState(view.state)) if view.state in set(JobState) else Text(view.state, style="dim")


def _facts(view: TrainingView) -> list[tuple[str, str]]:
    facts = {
        "training": f"{view.model}/{view.name}",
        "job": view.job_id,
        "state": view.state,
        "reason": view.reason,
        "started": f"{formatting.date_time(view.created_at)} by {view.owner}",
        "epoch": formatting.epochs(view.progress) if view.progress is not None else "",
        "loss": formatting.loss(view.progress) if view.progress is not None else "",
        "weights": "there" if view.has_weights else "none",
        "started from": ""
        if view.weights_from is None
        else f"{view.weights_from.source} ({view.weights_from.checksum})",
        "code": view.code_hash,
        "data's checksum": view.dataset_checksum,
    }
    return [*((key, value) for key, value in facts.items() if value), *facts_of(view.settings)]
