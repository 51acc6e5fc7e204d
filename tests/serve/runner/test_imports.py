"""A kernel imports what its own runner needs: the others' libraries would cost it seconds and memory."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "brought"),
    [("redhare", set()), ("python_class", {"numpy"}), ("onnx_model", {"numpy"}), ("torch_program", {"numpy", "torch"})],
)
def test_runner_brings_no_library_of_another(module: str, brought: set[str]) -> None:
    program = (
        f"import pliant.serve.runner.{module}, sys; print(*{{'torch', 'numpy', 'onnxruntime'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)

    assert set(done.stdout.split()) == brought
