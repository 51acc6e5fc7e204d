"""The JSON that begins an HPO task, as IBM's clients send it, with their spellings."""

import ast
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from pliant.api.faults import problems_of
from pliant.core.errors import InvalidInput, Problem
from pliant.ibm.rest.translate.plain_json import require_plain

FIELD: Final = "data"
MAX_CHARACTERS: Final = 2_000_000


def _as_text(value: object) -> object:
    """Return a number as the text that it is in JSON: clients send either."""
    return value if isinstance(value, str | Mapping | list) else json.dumps(value)


Text = Annotated[str, BeforeValidator(_as_text)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]


class _Part(BaseModel):
    """What is unknown in it is left alone, and null is as good as nothing: clients of every version send some."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: object) -> object:
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given


class HyperParam(_Part):
    """What one hyperparameter may be."""

    name: str
    type: str = ""
    """Range, Discrete or fix."""
    dataType: str = ""
    """int, double or str."""
    minDbVal: Real | None = None
    maxDbVal: Real | None = None
    minIntVal: Whole | None = None
    maxIntVal: Whole | None = None
    discreteDbVal: tuple[Real, ...] = ()
    discreteIntVal: tuple[Whole, ...] = ()
    discreateStrVal: Annotated[
        tuple[Text, ...], Field(validation_alias=AliasChoices("discreateStrVal", "discreteStrVal"))
    ] = ()
    step: Text | None = None
    power: Text | None = None
    userDefined: bool = False
    fixedVal: Text | None = None


class HpoExperiment(_Part):
    """Values that one experiment shall have."""

    id: Whole | None = None
    hyperParams: Annotated[
        tuple[HyperParam, ...], Field(validation_alias=AliasChoices("hyperParams", "fixedHyperParams"))
    ] = ()


class AlgoParam(_Part):
    """An argument of the algorithm."""

    name: str
    value: Text = ""


class AlgoDef(_Part):
    """What chooses, and its limits; -1 is none."""

    algorithm: str = ""
    maxRunTime: Real = -1.0
    """Minutes."""
    maxJobNum: Whole = -1
    maxParalleJobNum: Annotated[
        Whole, Field(validation_alias=AliasChoices("maxParalleJobNum", "maxParalleJob", "maxParallelJobNum"))
    ] = 1
    objectiveMetric: str = ""
    objective: str = ""
    additionalMetrics: Mapping[str, str] = Field(default_factory=dict)
    hyperbandEta: Text | None = None
    algoParams: tuple[AlgoParam, ...] = ()


class ModelSpec(_Part):
    """What every experiment runs."""

    sigName: str = ""
    args: str = ""


class HpoRequest(_Part):
    """The form field `data`."""

    hpoName: str = ""
    modelSpec: ModelSpec = ModelSpec()
    algoDef: AlgoDef = AlgoDef()
    hyperParams: tuple[HyperParam, ...] = ()
    experiments: tuple[HpoExperiment, ...] = ()


class ResDef(_Part):
    """How the experiments of a model's tuning are trained."""

    framework: str = ""
    initWeightPath: str = ""
    maxiteration: Text = ""
    miniteration: Text = ""
    batchsize: Whole | None = None
    gpuNum: Whole | None = None
    workerNum: Whole | None = None
    distribute: bool = False
    syncMode: str = ""
    resourceInstanceId: str = ""


class TuningRequest(HpoRequest):
    """The body that begins the tuning of a model."""

    modelName: str = ""
    resDef: ResDef = ResDef()


class PluginRequest(_Part):
    """The form field `data` that installs an algorithm of somebody's own."""

    name: Text = ""
    path: Text = ""
    condaHome: Text = ""
    condaEnv: Text = ""
    remoteExec: bool = False
    logLevel: Text = "INFO"


Asked = TypeVar("Asked", bound=_Part)


def read_hpo(text: str) -> tuple[HpoRequest, Mapping[str, Any]]:
    """Return what the form field `data` says, checked and as it came: JSON, or a dictionary as Python prints it.

    Raises:
        InvalidInput: it is neither, or holds what it cannot.
    """
    return _read(text, HpoRequest, FIELD, "modelSpec, algoDef and hyperParams")


def read_tuning(text: str) -> tuple[TuningRequest, Mapping[str, Any]]:
    """Return what a body says that begins the tuning of a model, as `read_hpo` does."""
    return _read(text, TuningRequest, "body", "resDef, algoDef and hyperParams")


def read_plugin(text: str) -> PluginRequest:
    """Return what the form field `data` says of an algorithm to install, as `read_hpo` does."""
    return _read(text, PluginRequest, FIELD, "name")[0]


def _read(text: str, kind: type[Asked], where: str, part: str) -> tuple[Asked, Mapping[str, Any]]:
    given = _load(text, where)
    if not isinstance(given, dict):
        raise InvalidInput.at(where, f"it is no object; send one with {part}")
    require_plain(given, where)
    try:
        return kind.model_validate(given), given
    except ValidationError as error:
        found = problems_of(error)
        raise InvalidInput(*(Problem(field=one.field or where, message=one.message) for one in found)) from error


def _load(text: str, where: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput.at(where, f"it is longer than {MAX_CHARACTERS:,} characters; send less")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if not text.lstrip().startswith("{'"):
            raise InvalidInput.at(where, f"it is not JSON ({error}); send an object") from error
    try:
        return json.loads(json.dumps(ast.literal_eval(text.strip())))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        message = "it is neither JSON nor a dictionary as Python prints it; send an object of JSON"
        raise InvalidInput.at(where, message) from error
