"""Without a TensorFlow, `import tensorflow` gives scripts Keras on PyTorch, and names what only TensorFlow has."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import run_script

from pliant.integrations.tensorflow_names import TensorFlowNames, offer

LIMIT_S = 110
pytestmark = pytest.mark.timeout(LIMIT_S + 10)
OFFER = "from pliant.integrations.tensorflow_names import offer\noffer()\n"


def run(folder: Path, text: str, *, before: str = OFFER, cold: bool = False) -> str:
    """Run a script of its own, which finds torch imported unless it is cold; return what it printed, errors last."""
    script, env = folder / "script.py", {"PATH": "", "OMP_NUM_THREADS": "1", "HOME": str(folder)}
    script.write_text(before + text)
    if cold:
        command = [sys.executable, "-W", "error", script.name]
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    else:
        done = run_script(script, folder=folder, env=env, warnings_fail=True)
    return done.stdout + done.stderr


USED = """
import tensorflow as tf
import tensorflow.keras.layers as L
from tensorflow import keras
from tensorflow.keras.models import Sequential
from tensorflow.keras.preprocessing.image import ImageDataGenerator
import keras as real

assert tf.keras is keras
assert Sequential is real.Sequential is tf.keras.Sequential
assert L.Dense is real.layers.Dense
assert keras.backend.backend() == "torch"
assert tf.nn.relu is real.activations.relu
assert tf.__version__.startswith("2.")
assert tf.float32 == "float32"
assert tf.get_logger().name == "tensorflow"
for device in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(device, True)
assert [one.device_type for one in tf.config.list_physical_devices("CPU")] == ["CPU"]
tf.random.set_seed(3)
first = L.Dense(2)(tf.keras.ops.ones((1, 2)))
tf.random.set_seed(3)
again = L.Dense(2)(tf.keras.ops.ones((1, 2)))
assert bool((first == again).all())
assert not hasattr(tf, "GradientTape")
"""
REFUSED = [
    ("tf.GradientTape()", "tf.GradientTape is TensorFlow's own", "gradients are computed from the model"),
    ("from tensorflow import GradientTape", "tf.GradientTape is TensorFlow's own", "leave it out"),
    ("tf.distribute.MirroredStrategy()", "tf.distribute is TensorFlow's own", "Pliant spreads the training"),
    ("tf.function(print)", "tf.function is TensorFlow's own", "leave the decorator out"),
    ("tf.compat.v1.Session()", "tf.compat is TensorFlow's own", "TensorFlow 1 cannot be trained elastically"),
    ("import tensorflow.compat.v1 as tf1", "tf.compat is TensorFlow's own", "write the model with tf.keras"),
    ("from tensorflow.python.keras import x", "tf.python is TensorFlow's own", "import from tensorflow.keras"),
    ("tf.data.Dataset", "tf.data is TensorFlow's own", "an object with __len__ and __getitem__"),
    ("tf.random.normal((2,))", "tf.random.normal is TensorFlow's own", "use keras.ops or torch for it"),
    ("tf.nn.gelu", "tf.nn.gelu is TensorFlow's own", "use keras.ops or torch for it"),
    ("tf.config.experimental.set_memory_growth('GPU', False)", "set_memory_growth", "torch always grows"),
    ("import tensorflow.keras.nope", "No module named 'tensorflow.keras.nope'", ""),
]
TRY = """
for line in {lines!r}:
    try:
        exec(line)
    except (AttributeError, ImportError) as error:
        print(line, "->", error)
    else:
        print(line, "-> nothing was raised")
"""


def test_what_keras_scripts_use_has_its_exact_meaning(tmp_path: Path) -> None:
    assert run(tmp_path, USED, cold=True) == ""


def test_what_only_tensorflow_has_is_refused_by_its_name_and_with_advice(tmp_path: Path) -> None:
    lines = [line for line, _, _ in REFUSED]

    told = run(tmp_path, "import tensorflow as tf\n" + TRY.format(lines=lines)).splitlines()

    assert len(told) == len(REFUSED)
    for (line, name, advice), found in zip(REFUSED, told, strict=True):
        assert found.startswith(f"{line} -> ")
        assert name in found
        assert advice in found


def test_an_uncaught_one_ends_the_script_with_what_to_do(tmp_path: Path) -> None:
    told = run(tmp_path, "import tensorflow as tf\nwith tf.GradientTape() as tape:\n    pass\n").splitlines()

    assert told[-1].endswith(
        "tf.GradientTape is TensorFlow's own, and elastic trainings run Keras on PyTorch: leave it out: gradients are "
        "computed from the model, its loss and its optimizer. In an environment with TensorFlow the script runs as it "
        "is as a job of a fixed size (pliant submit --fixed 1)"
    )


def test_a_tensorflow_that_is_there_is_found_and_nothing_shadows_it(tmp_path: Path) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("real = True\n")

    told = run(tmp_path, "import tensorflow\nprint(tensorflow.real)\nimport tensorflow.absent\n").splitlines()

    assert told[0] == "True"
    assert told[-1] == "ModuleNotFoundError: No module named 'tensorflow.absent'"


def test_without_keras_the_extra_is_named(tmp_path: Path) -> None:
    hidden = OFFER + "import sys\nsys.path[:] = [path for path in sys.path if 'site-packages' not in path]\n"

    assert run(tmp_path, "import tensorflow", before=hidden, cold=True).splitlines()[-1] == (
        "ImportError: tensorflow stands for Keras on PyTorch here. Keras is not installed here; install it with: "
        "pip install 'pliant[keras]'"
    )
    told = run(tmp_path, "import pliant.integrations.keras", before=hidden, cold=True).splitlines()
    assert told[-1] == "ImportError: Keras is not installed here; install it with: pip install 'pliant[keras]'"


def test_libraries_do_not_take_it_for_a_tensorflow(tmp_path: Path) -> None:
    asks = "import tensorflow\nfrom keras.src.utils.module_utils import tensorflow as theirs\nprint(theirs.available)\n"
    assert run(tmp_path, asks) == "False\n"
    asks = "import runpy\ntry:\n    runpy.run_module('tensorflow')\nexcept ImportError as error:\n    print(error)\n"
    assert run(tmp_path, asks).splitlines()[-1].startswith("No module named tensorflow")


def test_a_backend_that_was_chosen_stays() -> None:
    chosen, open_ = {"KERAS_BACKEND": "jax"}, dict[str, str]()
    before = list(sys.meta_path)

    offer(chosen)
    offer(open_)
    offer(open_)
    ours = [finder for finder in sys.meta_path if isinstance(finder, TensorFlowNames)]

    assert (chosen["KERAS_BACKEND"], open_["KERAS_BACKEND"]) == ("jax", "torch")
    assert len(ours) == 1
    assert ours[0] is (before + ours)[-1] or ours[0] in before, "it comes last"
