"""IBM's routes that mean nothing here, or not yet: each says so, instead of not being found."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from pliant.core.access import Permission
from pliant.core.errors import NotFound
from pliant.ibm.rest.errors import CONDUCTOR, DEEP_LEARNING, DLIM, NotSupported
from pliant.ibm.rest.routing import ibm_routes

deep_learning = ibm_routes(DEEP_LEARNING)
conductor = ibm_routes(CONDUCTOR)
inference = ibm_routes(DLIM)

_PREDICTION: Final = "prediction jobs are not part of Pliant; models that answer are deployed and asked below /dlim/v1"
_SERVING: Final = "models that answer are deployed and asked below /dlim/v1, not here"
_VALIDATION: Final = "validations of trained models are not part of this server yet; evaluate in the program itself"

ABSENT: Final[Mapping[tuple[str, str], str]] = {
    ("POST", "/execs/{exec_id}/deploy"): _SERVING,
    ("GET", "/models/{model}/validations"): _VALIDATION,
    ("POST", "/models/{model}/validations"): _VALIDATION,
    ("DELETE", "/models/{model}/validations/{validation}"): _VALIDATION,
    ("PUT", "/models/{model}/validations/{validation}/stop"): _VALIDATION,
    ("GET", "/inferences"): _PREDICTION,
    ("POST", "/inferences"): _PREDICTION,
    ("POST", "/inferences/startpredict"): _PREDICTION,
    ("GET", "/inferences/{prediction}"): _PREDICTION,
    ("DELETE", "/inferences/{prediction}"): _PREDICTION,
    ("GET", "/inferences/{prediction}/predicts"): _PREDICTION,
    ("PUT", "/inferences/{prediction}/stop"): _PREDICTION,
    ("GET", "/edimodels"): _SERVING,
    ("POST", "/edimodels/new"): _SERVING,
    ("GET", "/edimodels/{model}"): _SERVING,
    ("POST", "/edimodels/{model}"): _SERVING,
    ("PUT", "/edimodels/{model}"): _SERVING,
    ("DELETE", "/edimodels/{model}"): _SERVING,
    ("GET", "/edimodels/{model}/appprofile"): _SERVING,
    ("PUT", "/edimodels/{model}/appprofile"): _SERVING,
    ("POST", "/edimodels/{model}/inference"): _SERVING,
    ("GET", "/edimodels/{model}/instance"): _SERVING,
    ("PUT", "/edimodels/{model}/operation/start"): _SERVING,
    ("PUT", "/edimodels/{model}/operation/stop"): _SERVING,
    ("GET", "/edimodels/{model}/readme"): _SERVING,
    ("GET", "/edimodels/{model}/streaming"): _SERVING,
}
"""Methods and paths, and why."""

UNKNOWN: Final = "/{rest:path}"
"""Every other path, so that it is not found in IBM's form."""


def _refuse(why: str) -> Callable[[], Coroutine[Any, Any, None]]:
    async def refuse() -> None:
        raise NotSupported(why)

    return refuse


async def _refuse_unknown(rest: str) -> None:
    raise NotFound(f"there is no /{rest}, or not for this method; docs/wmla.md lists what there is")


for (_method, _path), _why in ABSENT.items():
    deep_learning.add(_method, _path, Permission.SELF)(_refuse(_why))
for _routes in (deep_learning, conductor, inference):
    for _method in ("GET", "POST", "PUT", "DELETE"):
        _routes.add(_method, UNKNOWN, Permission.SELF)(_refuse_unknown)
