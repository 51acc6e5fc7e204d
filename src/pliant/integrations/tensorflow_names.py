"""`import tensorflow` in scripts whose models are Keras code: Keras 3 on PyTorch, under the names that they use.

Elastic trainings run on PyTorch, and so does Keras 3. A script that says `tf.keras` needs no TensorFlow then. `offer`
puts a finder at the very end of `sys.meta_path`, so a TensorFlow that is installed is found before it. What the finder
gives has `tf.keras` (the tree of names that Keras itself keeps for TensorFlow) and those few plain names that have an
exact meaning here. All else is refused by an error that names it.

Libraries do not see it: many ask whether there is a TensorFlow and behave differently then, Keras among them. Whether
it is a library that imports is told by where its file lies.

Knows nothing of trainings, and imports Keras and torch only when a script asks for `tensorflow`.
"""

import importlib
import importlib.util
import logging
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple

NAME: Final = "tensorflow"
NEEDS_KERAS: Final = "Keras is not installed here; install it with: pip install 'pliant[keras]'"
BACKEND: Final = "KERAS_BACKEND"
VERSION: Final = "2.16.0+pliant"
"""What `tf.__version__` says: the first TensorFlow whose `tf.keras` is Keras 3."""
_KERAS: Final = "keras._tf_keras.keras"
_HINTS: Final[Mapping[str, str]] = {
    "GradientTape": "leave it out: gradients are computed from the model, its loss and its optimizer",
    "distribute": "leave it out: Pliant spreads the training over its tasks",
    "function": "leave the decorator out: the model runs eagerly",
    "data": "give arrays, or an object with __len__ and __getitem__ that returns one (x, y)",
    "compat": "TensorFlow 1 cannot be trained elastically; write the model with tf.keras",
    "Session": "TensorFlow 1 cannot be trained elastically; write the model with tf.keras",
    "estimator": "write the model with tf.keras",
    "saved_model": "the trained model is saved as model/model.keras; convert that where TensorFlow is installed",
    "summary": "what is trained is recorded anyway; `pliant metrics` shows it",
    "python": "this is private to TensorFlow; import from tensorflow.keras",
}
_ADVICE: Final = "use keras.ops or torch for it"
_ACTIVATIONS: Final = ("elu", "relu", "relu6", "selu", "sigmoid", "softmax", "softplus", "softsign", "tanh")
"""Those of `tf.nn` that Keras has under the same name with the same defaults."""


class TensorFlowOnlyName(AttributeError):
    """A name of TensorFlow that a script asked for, and that Keras on PyTorch does not have."""


class TensorFlowOnlyModule(ImportError):
    """A module of TensorFlow that a script imports, and that Keras on PyTorch does not have."""


class PhysicalDevice(NamedTuple):
    """What `tf.config.list_physical_devices` lists."""

    name: str
    device_type: str


def offer(environment: MutableMapping[str, str] | None = None) -> None:
    """Let scripts of this process find Keras on PyTorch, also as `tensorflow`; a backend that was chosen stays."""
    (os.environ if environment is None else environment).setdefault(BACKEND, "torch")
    if not any(isinstance(finder, TensorFlowNames) for finder in sys.meta_path):
        sys.meta_path.append(TensorFlowNames())


class TensorFlowNames(MetaPathFinder, Loader):
    """Finds `tensorflow` for code that is no library, where there is no TensorFlow."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return a spec for `tensorflow` and `tensorflow.keras`.

        Raises:
            TensorFlowOnlyModule: it is another module of TensorFlow's.
        """
        package, _, rest = fullname.partition(".")
        if package != NAME or (rest == "" and _is_asked_by_library()):
            return None
        if not rest or rest == "keras":
            return ModuleSpec(fullname, self, is_package=True)
        if rest.startswith("keras."):
            return None  # Keras has no such module: Python says so
        if not isinstance(sys.modules.get(NAME), Names):
            return None  # a module that is missing in a TensorFlow that is there
        raise TensorFlowOnlyModule(_refusal(fullname, rest), name=fullname)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module of the plain names; that of Keras exists already.

        Raises:
            ImportError: Keras is not installed.
        """
        if spec.name != NAME:
            return None
        if importlib.util.find_spec("keras") is None:
            raise ImportError(f"{NAME} stands for Keras on PyTorch here. {NEEDS_KERAS}", name="keras")
        # Keras asks once whether there is a TensorFlow: while there is none for it.
        assert not importlib.import_module("keras.src.utils.module_utils").tensorflow.available
        return _tensorflow()

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ != NAME:
            sys.modules[module.__name__] = importlib.import_module(_KERAS)


class Names(ModuleType):
    """A module of some names, each made when it is asked for; others are refused."""

    def __init__(self, name: str, made: Mapping[str, Callable[[], Any]]) -> None:
        super().__init__(name)
        self._made = made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name not in self._made:
            full = f"{self.__name__}.{name}"
            raise TensorFlowOnlyName(_refusal(full, full.partition(".")[2]), name=name, obj=self)
        value = self._made[name]()
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted(self._made)


def _tensorflow() -> Names:
    experimental = Names(
        f"{NAME}.config.experimental",
        {
            "list_physical_devices": lambda: _list_physical_devices,
            "set_memory_growth": lambda: _set_memory_growth,
        },
    )
    config = Names(
        f"{NAME}.config",
        {"list_physical_devices": lambda: _list_physical_devices, "experimental": lambda: experimental},
    )
    nn = Names(f"{NAME}.nn", {name: _activation(name) for name in _ACTIVATIONS})
    random = Names(f"{NAME}.random", {"set_seed": lambda: _set_seed})
    module = Names(
        NAME,
        {
            "keras": lambda: importlib.import_module(f"{NAME}.keras"),
            "config": lambda: config,
            "nn": lambda: nn,
            "random": lambda: random,
            "get_logger": lambda: lambda: logging.getLogger(NAME),
            **{kind: _constant(kind) for kind in ("float16", "bfloat16", "float32", "float64", "int32", "int64")},
        },
    )
    vars(module)["__version__"] = VERSION
    return module


def _constant(value: str) -> Callable[[], str]:
    return lambda: value


def _activation(name: str) -> Callable[[], Any]:
    return lambda: getattr(importlib.import_module("keras").activations, name)


def _set_seed(seed: int) -> None:
    """Seed what first weights are drawn from."""
    importlib.import_module("keras").utils.set_random_seed(seed)


def _list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the processor and the GPUs that this process can use."""
    num_gpus = importlib.import_module("torch").cuda.device_count()
    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    found += [PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(num_gpus)]
    return [one for one in found if device_type in (None, one.device_type)]


def _set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Do nothing: torch takes a GPU's memory as it is needed anyway.

    Raises:
        TensorFlowOnlyName: all memory is to be taken at once.
    """
    if not enable:
        raise TensorFlowOnlyName(f"tf.config.experimental.set_memory_growth({device}, False): torch always grows")


def _refusal(full: str, rest: str) -> str:
    hint = _HINTS.get(rest.partition(".")[0], _ADVICE)
    said = full.replace(NAME, "tf", 1)
    return (
        f"{said} is TensorFlow's own, and elastic trainings run Keras on PyTorch: {hint}. In an "
        f"environment with TensorFlow the script runs as it is as a job of a fixed size (pliant submit --fixed 1)"
    )


def _is_asked_by_library() -> bool:
    """Tell whether the code that imports, the first that is none of `importlib`, is Python's or an installed package.

    Pliant's own does not count either.
    """
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and "importlib" not in file:
            return file.startswith(("<frozen", *_LIBRARIES))
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False


_LIBRARIES: Final = tuple(
    os.path.join(path, "")
    for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
