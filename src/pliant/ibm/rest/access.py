"""The allow-list's rows for the routes of IBM's API."""

from collections.abc import Mapping
from typing import Final

from pliant.core.access import Permission

_AUTH: Final = "/auth/v1"
_CONDUCTOR: Final = "/platform/rest/conductor/v1"
_DEEP_LEARNING: Final = "/platform/rest/deeplearning/v1"

IBM_OPEN: Final[frozenset[tuple[str, str]]] = frozenset(
    {("GET", f"{_AUTH}/logon"), ("GET", f"{_CONDUCTOR}/auth/logon")}
)
"""Routes that need no credentials, but name and password."""

_LOGS: Final = "/instances/{sig_id}/applications/{application_id}"
_APPLICATION: Final = "/scheduler/applications/{application_id}"

_JOBS_READ: Final = (
    ("GET", "/execs"),
    ("GET", "/execs/"),
    ("GET", "/execs/{exec_id}"),
    ("GET", "/execs/{exec_id}/log"),
    ("GET", "/execs/{exec_id}/result"),
    ("GET", "/scheduler/applications"),
    ("GET", _APPLICATION),
    ("GET", f"{_APPLICATION}/driver/logs/{{kind}}"),
    ("GET", f"{_APPLICATION}/executor/{{executor}}/logs/{{kind}}"),
    ("GET", "/scheduler/engine/applications"),
    ("GET", "/scheduler/engine/applications/{application_id}"),
    ("GET", "/scheduler/kubernetesobjects"),
)
_JOBS_WRITE: Final = (
    ("POST", "/execs"),
    ("POST", "/execs/"),
    ("DELETE", "/execs"),
    ("DELETE", "/execs/"),
    ("DELETE", "/execs/{exec_id}"),
    ("POST", "/execs/{exec_id}/stop"),
    ("PUT", f"{_APPLICATION}/stop"),
)
_POOL_READ: Final = (
    ("GET", "/conf"),
    ("GET", "/status"),
    ("GET", "/execs/frameworks"),
    ("GET", "/frameworks"),
    ("GET", "/frameworks/all"),
    ("GET", "/scheduler/instances"),
    ("GET", "/resplans/resplantree"),
    ("GET", "/resplans/resplan/{name}"),
)
_DATA_READ: Final = (
    ("GET", "/datasets"),
    ("GET", "/datasets/{dataset}"),
    ("GET", "/datasets/{dataset}/csvs"),
    ("GET", "/datasets/{dataset}/objectimages"),
)
_DATA_WRITE: Final = (
    ("POST", "/datasets"),
    ("DELETE", "/datasets/{dataset}"),
    ("PUT", "/datasets/{dataset}/stop"),
)
_MODELS_READ: Final = (
    ("GET", "/modeltemplates"),
    ("GET", "/modeltemplates/files/{name:path}"),
    ("GET", "/modeltemplates/{template}"),
    ("GET", "/modeltemplates/{template}/files"),
    ("GET", "/models"),
    ("GET", "/models/files/{name:path}"),
    ("GET", "/models/{model}"),
    ("GET", "/models/{model}/files"),
    ("GET", "/models/{model}/trainings"),
    ("GET", "/models/{model}/trainingnames"),
    ("GET", "/models/{model}/trainings/{training}"),
    ("GET", "/models/{model}/trainings/{training}/weightfile"),
)
_MODELS_WRITE: Final = (
    ("POST", "/modeltemplates"),
    ("PUT", "/modeltemplates/{template}"),
    ("DELETE", "/modeltemplates/{template}"),
    ("POST", "/models"),
    ("POST", "/models/weightfile"),
    ("PUT", "/models/{model}"),
    ("PUT", "/models/{model}/files"),
    ("DELETE", "/models/{model}"),
    ("POST", "/models/{model}/trainings"),
    ("PUT", "/models/{model}/trainings/{training}/stop"),
    ("DELETE", "/models/{model}/trainings/{training}"),
)
_POOL_WRITE: Final = (("DELETE", "/resplans/resplan/{name}"),)
_OF_CONDUCTOR: Final = (
    ("GET", f"{_LOGS}"),
    ("GET", f"{_LOGS}/logs/{{kind}}"),
    ("GET", f"{_LOGS}/logs/{{kind}}/download"),
    ("GET", f"{_LOGS}/{{executor}}/logs/{{kind}}"),
    ("GET", f"{_LOGS}/{{executor}}/logs/{{kind}}/download"),
    ("GET", "/instances/{sig_id}/applications"),
)
_ABSENT_OF_CONDUCTOR: Final = (
    ("POST", "/instances"),
    ("PUT", "/instances/{sig_id}"),
    ("DELETE", "/instances/{sig_id}"),
    ("PUT", "/instances/{sig_id}/deploy"),
    ("PUT", "/instances/{sig_id}/start"),
    ("PUT", "/instances/{sig_id}/stop"),
)
_UNKNOWN: Final = tuple((method, "/{rest:path}") for method in ("GET", "POST", "PUT", "DELETE"))
_ABSENT: Final = (
    ("POST", "/execs/{exec_id}/deploy"),
    ("GET", "/hypersearch"),
    ("POST", "/hypersearch"),
    ("DELETE", "/hypersearch"),
    ("GET", "/hypersearch/algorithm"),
    ("POST", "/hypersearch/algorithm"),
    ("POST", "/hypersearch/algorithm/install"),
    ("GET", "/hypersearch/algorithm/{algorithm}"),
    ("DELETE", "/hypersearch/algorithm/{algorithm}"),
    ("GET", "/hypersearch/{search}"),
    ("PUT", "/hypersearch/{search}"),
    ("DELETE", "/hypersearch/{search}"),
    ("PUT", "/hypersearch/{search}/force"),
    ("PUT", "/hypersearch/{search}/restart"),
    ("GET", "/models/{model}/hypersearch"),
    ("POST", "/models/{model}/hypersearch"),
    ("GET", "/models/{model}/hypersearch/{search}"),
    ("DELETE", "/models/{model}/hypersearch/{search}"),
    ("PUT", "/models/{model}/hypersearch/{search}/create/{new}"),
    ("PUT", "/models/{model}/hypersearch/{search}/force"),
    ("PUT", "/models/{model}/hypersearch/{search}/restart"),
    ("PUT", "/models/{model}/hypersearch/{search}/stop"),
    ("PUT", "/models/{model}/hypersearch/{search}/update"),
    ("GET", "/models/{model}/validations"),
    ("POST", "/models/{model}/validations"),
    ("DELETE", "/models/{model}/validations/{validation}"),
    ("PUT", "/models/{model}/validations/{validation}/stop"),
    ("GET", "/inferences"),
    ("POST", "/inferences"),
    ("POST", "/inferences/startpredict"),
    ("GET", "/inferences/{prediction}"),
    ("DELETE", "/inferences/{prediction}"),
    ("GET", "/inferences/{prediction}/predicts"),
    ("PUT", "/inferences/{prediction}/stop"),
    ("GET", "/edimodels"),
    ("POST", "/edimodels/new"),
    ("GET", "/edimodels/{model}"),
    ("POST", "/edimodels/{model}"),
    ("PUT", "/edimodels/{model}"),
    ("DELETE", "/edimodels/{model}"),
    ("GET", "/edimodels/{model}/appprofile"),
    ("PUT", "/edimodels/{model}/appprofile"),
    ("POST", "/edimodels/{model}/inference"),
    ("GET", "/edimodels/{model}/instance"),
    ("PUT", "/edimodels/{model}/operation/start"),
    ("PUT", "/edimodels/{model}/operation/stop"),
    ("GET", "/edimodels/{model}/readme"),
    ("GET", "/edimodels/{model}/streaming"),
)
"""They only say that they mean nothing here, or not yet."""


def _below(prefix: str, routes: tuple[tuple[str, str], ...], needed: Permission) -> dict[tuple[str, str], Permission]:
    return {(method, f"{prefix}{path}"): needed for method, path in routes}


IBM_NEEDED: Final[Mapping[tuple[str, str], Permission]] = {
    ("POST", f"{_AUTH}/logoff"): Permission.SELF,
    ("POST", f"{_CONDUCTOR}/auth/logoff"): Permission.SELF,
    ("GET", f"{_CONDUCTOR}/instances"): Permission.POOL_READ,
    ("GET", f"{_CONDUCTOR}/instances/{{sig_id}}"): Permission.POOL_READ,
    **_below(_CONDUCTOR, _OF_CONDUCTOR, Permission.JOBS_READ),
    **_below(_DEEP_LEARNING, _JOBS_READ, Permission.JOBS_READ),
    **_below(_DEEP_LEARNING, _JOBS_WRITE, Permission.JOBS_WRITE),
    **_below(_DEEP_LEARNING, _POOL_READ, Permission.POOL_READ),
    **_below(_DEEP_LEARNING, _POOL_WRITE, Permission.POOL_WRITE),
    **_below(_DEEP_LEARNING, _DATA_READ, Permission.DATA_READ),
    **_below(_DEEP_LEARNING, _DATA_WRITE, Permission.DATA_WRITE),
    **_below(_DEEP_LEARNING, _MODELS_READ, Permission.MODELS_READ),
    **_below(_DEEP_LEARNING, _MODELS_WRITE, Permission.MODELS_WRITE),
    **_below(_DEEP_LEARNING, (*_ABSENT, *_UNKNOWN), Permission.SELF),
    **_below(_CONDUCTOR, (*_ABSENT_OF_CONDUCTOR, *_UNKNOWN), Permission.SELF),
}
"""What every other route of IBM's needs."""
