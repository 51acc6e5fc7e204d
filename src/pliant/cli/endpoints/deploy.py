"""The command `deploy`: finds what is meant, sends it, waits until it serves, and says how to ask it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.api.endpoints import DeployRequest, EndpointView
from pliant.cli.endpoints.asked import OF_DEPLOYMENT
from pliant.cli.endpoints.example import examples_of, predict_url
from pliant.cli.fields import Given, takes
from pliant.cli.jobs.code import environment_of
from pliant.cli.options import JsonOption, whole_path
from pliant.cli.problems import validate
from pliant.cli.screen import print_json, say
from pliant.cli.searches.best import require_best
from pliant.cli.session import job_id_of, open_client, search_of
from pliant.client import Client
from pliant.core.endpoint import VersionState
from pliant.core.errors import InvalidInput, NotFound

_MAX_NAME: Final = 50
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SUFFIX: Final = re.compile(r"\.(tar\.gz|tgz|tar|zip|py|pt2?|onnx)$")


@takes(OF_DEPLOYMENT)
def deploy(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A trained job (job-3), a search (its best trial), a folder, a file or an archive.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the endpoint; default: the folder's or the job's.", show_default=False),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What to run in the folder, if it is not clear.", show_default=False),
    ] = None,
    *,
    given: Given,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it serves, or has failed.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Serve a trained job or a model as an endpoint.

    A folder holds serve.py, kernel.py, a TorchScript or .pt2 file, or
    model.onnx. To deploy to an endpoint that is there adds a version, which takes the traffic
    as its kernels get ready; what is not given stays as it was.

    \b
    pliant deploy 3
    pliant deploy digits/ --min 1 --max 8 --share '*'
    pliant deploy model.onnx --name digits --no-wait
    pliant deploy digits/ --traffic 10
    """
    with open_client(context) as client:
        folder, request, usual_name = _asked(client, what, file, given)
        chosen = name or usual_name
        if not chosen:
            raise InvalidInput.at("--name", f"{what!r} gives the endpoint no name; give one of letters and digits")
        view = client.endpoints.deploy(chosen, folder, request)
        number = view.versions[-1].number
        if wait:
            say(f"{chosen}: version {number} is sent", stderr=True)
            with _leaving_alone(chosen):
                view = client.endpoints.wait(chosen, on_poll=_Progress().show)
    if as_json:
        print_json(view)
    elif not wait:
        say(f"{chosen}: version {number} is being loaded; `pliant endpoints show {chosen}` says how it is")
    _report(view, as_json=as_json)


def _asked(client: Client, what: str, file: str | None, given: Given) -> tuple[Path | None, DeployRequest, str]:
    """Return the folder or file that is deployed, what is asked for, and how the endpoint is usually called."""
    path = Path(what).expanduser()
    fields = dict(given)
    environment, requirements = fields.pop("environment", None), fields.pop("requirements", None)
    if file is not None:
        fields["file"] = file
    if path.exists():
        if (chosen := environment_of(path, environment, requirements)) is not None:
            fields["environment"] = chosen
        return path, validate(DeployRequest, fields), fit_name(path.resolve().name)
    if requirements is not None:
        raise InvalidInput.at("--requirements", "a job is deployed with its own environment; leave it out")
    if environment is not None:
        fields["environment"] = whole_path(environment) if environment.startswith(("~", ".", "/")) else environment
    if (search := search_of(client, what)) is not None:
        request = validate(DeployRequest, {**fields, "job": require_best(search).job_id})
        return None, request, fit_name(search.name)
    try:
        job_id = job_id_of(client, what)
    except NotFound as error:
        raise NotFound(f"there is neither a file nor a folder {what!r}, and {error}") from error
    return None, validate(DeployRequest, {**fields, "job": job_id}), fit_name(client.job(job_id).job.spec.name)


def fit_name(text: str) -> str:
    """Return a name of an endpoint that is as near to a text as the rules allow; empty if nothing of it is left."""
    fit = _UNFIT.sub("-", _SUFFIX.sub("", text)).lstrip("._-")
    return fit[:_MAX_NAME].rstrip("-")


class _Progress:
    """Says on stderr what has changed."""

    def __init__(self) -> None:
        self._said = ""

    def show(self, view: EndpointView) -> None:
        """Say how the newest version is, if it is otherwise than before."""
        version = view.versions[-1]
        if version.state is VersionState.STARTING:
            because = version.why or view.reason
            line = f"{view.name}: version {version.number} is {view.state if view.state == 'waiting' else 'starting'}"
            said = f"{line}: {because}" if because else line
        elif view.exchange:
            said = f"{view.name}: {view.exchange}"
        else:
            return
        if said != self._said:
            self._said = said
            say(said, stderr=True)


@contextmanager
def _leaving_alone(name: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        say(f"\n{name} goes on loading: `pliant endpoints show {name}` says how it is", stderr=True)
        raise


def _report(view: EndpointView, *, as_json: bool) -> None:
    """Say how to ask what serves; end with code 1 if it does not."""
    newest = view.versions[-1]
    if newest.state is VersionState.FAILED:
        goes_on = "" if view.current is None else f"; version {view.current} serves as before"
        look = f"`pliant endpoints logs {view.name} --version {newest.number}` shows what it wrote"
        say(f"{view.name}: version {newest.number} failed: {newest.reason}{goes_on}; {look}", stderr=True)
        raise typer.Exit(1)
    if as_json or newest.state is VersionState.STARTING:
        return
    url = predict_url(view)
    grpc = "" if view.grpc_address is None else f", and over gRPC at {view.grpc_address}"
    what = f"version {view.current}"
    if newest.number != view.current and newest.traffic:
        what = f"{newest.traffic} % of its requests with version {newest.number}"
    say(f"{view.name} serves {what}" + ("" if url is None else f" at {url}{grpc}"))
    for example in examples_of(view):
        say(f"  {example}")
