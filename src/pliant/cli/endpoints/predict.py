"""The command `predict`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pliant.cli.options import name_argument
from pliant.cli.readable import readable_json
from pliant.cli.session import open_client
from pliant.core.duration import seconds_of
from pliant.core.errors import InvalidInput


def predict(
    context: typer.Context,
    name: Annotated[str, name_argument("endpoint", "Of the endpoint.")],
    data: Annotated[
        str, typer.Option(metavar="JSON|@FILE|-", help="What is asked: text, a file, or stdin.", show_default=False)
    ],
    raw: Annotated[bool, typer.Option("--raw", help="Send it to the model as it is, in its own form.")] = False,
    version: Annotated[
        int | None, typer.Option(metavar="N", help="Ask this one, not the one that serves.", show_default=False)
    ] = None,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="Wait so long for the answer, or for each part of it.")
    ] = "5m",
    stream: Annotated[bool, typer.Option("--stream", help="Print each part of the answer as it comes.")] = False,
) -> None:
    """Ask the model of an endpoint; the answer is JSON.

    The form is that of the Open Inference Protocol; with --raw it is the model's own. With --stream every part of the
    answer is a line; Ctrl-C ends the request, at the model, too.

    \b
    pliant predict digits --data '{"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [0, 1]}]}'
    pliant predict digits --raw --data @request.json
    """
    document = _document(data)
    timeout_s = seconds_of(timeout, field="--timeout")
    with open_client(context) as client:
        ask: Callable[..., Any] = client.endpoints.infer_stream if stream else client.endpoints.infer
        answer = ask(name, document, version=version, timeout_s=timeout_s, raw=raw)
        for part in answer if stream else (answer,):
            _print(part)


def _print(answer: Any) -> None:
    sys.stdout.write(readable_json(json.dumps(answer, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def _document(data: str) -> Any:
    """Return what is asked.

    Raises:
        InvalidInput: it cannot be read, or is no JSON.
    """
    try:
        if data == "-":
            text = sys.stdin.read()
        elif data.startswith("@"):
            text = Path(data[1:]).expanduser().read_text(encoding="utf-8")
        else:
            text = data
        return json.loads(text)
    except OSError as error:
        raise InvalidInput.at("--data", f"{data[1:]!r} cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise InvalidInput.at("--data", f"it is no text ({error.reason}); give JSON in UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput.at("--data", f"it is no JSON ({error}); give an object, @FILE, or - for stdin") from error
