"""An example of a request to a model, made of what the model says of its inputs. Pure."""

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any, Final

from pliant.api.endpoints import EndpointView, VersionView

_MAX_ELEMENTS: Final = 16
"""More would fill the screen."""
_FILE: Final = "@request.json"


def predict_url(view: EndpointView) -> str | None:
    """Return where an endpoint is asked; None while there is no gateway."""
    if view.http_url is None:
        return None
    version = served_version(view)
    if version is not None and version.runner == "redhare":
        return f"{view.http_url}/dlim/v1/inference/{view.name}"
    return f"{view.http_url}/v2/models/{view.name}/infer"


def examples_of(view: EndpointView) -> tuple[str, ...]:
    """Return the commands that ask an endpoint."""
    version = served_version(view)
    document = None if version is None else example_document(version.metadata)
    data = _FILE if document is None else json.dumps(document)
    raw = " --raw" if version is not None and version.runner == "redhare" else ""
    commands = [f"pliant predict {view.name}{raw} --data {shlex.quote(data)}"]
    if (url := predict_url(view)) is not None:
        headers = "-H \"Authorization: Bearer $PLIANT_TOKEN\" -H 'Content-Type: application/json'"
        commands.append(f"curl {headers} --data {shlex.quote(data)} {shlex.quote(url)}")
    return tuple(commands)


def served_version(view: EndpointView) -> VersionView | None:
    """Return the version that has the traffic."""
    return next((one for one in view.versions if one.number == view.current), None)


def example_document(metadata: Mapping[str, object]) -> dict[str, Any] | None:
    """Return a request of zeros; None if the model does not say what it takes, or if that is too much to show.

    What it says comes from people's code, and may be anything.
    """
    inputs = metadata.get("inputs")
    if not isinstance(inputs, list | tuple) or not inputs:
        return None
    tensors = [_example(one) for one in inputs]
    return None if None in tensors else {"inputs": tensors}


def _example(described: object) -> dict[str, Any] | None:
    match described:
        case {"name": str(name), "datatype": str(datatype), "shape": list() | tuple() as given} if all(
            isinstance(one, int) for one in given
        ):
            shape = [max(1, one) for one in given]
            num_elements = math.prod(shape)
            if num_elements > _MAX_ELEMENTS:
                return None
            return {"name": name, "shape": shape, "datatype": datatype, "data": [_ZERO.get(datatype, 0)] * num_elements}
        case _:
            return None


_ZERO: Final[Mapping[str, object]] = {"BOOL": False, "BYTES": "text", "FP16": 0.0, "FP32": 0.0, "FP64": 0.0}
