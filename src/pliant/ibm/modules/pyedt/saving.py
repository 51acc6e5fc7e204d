"""The files of a training in IBM's layout: weights and optimizer state by epochs, first weights, ONNX, a zip.

Weights are `state_dict`s. A file is whole or absent: it is written beside its place and renamed.
"""

import importlib.util
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from pliant.core.errors import InvalidInput, NotFound
from pliant.train.state import checkpoint

ONNX_NEEDS: Final = ("onnx", "onnxscript")
FINAL: Final = "model_epoch_final.pth"
_BY_EPOCH: Final = re.compile(r"model_epoch_(\d+)\.pth")


def save_weights(module: nn.Module, optimizers: Mapping[str, torch.optim.Optimizer], folder: Path, name: str) -> None:
    """Write `train/model_epoch_NAME.pth` and `train/model_epoch_NAME_optimizer_state.pth` into a model folder.

    The latter holds the state of one optimizer, or of several by their names.
    """
    states = {key: optimizer.state_dict() for key, optimizer in optimizers.items()}
    target = folder / "train"
    checkpoint.write(target / f"model_epoch_{name}.pth", module.state_dict())
    kept = states if len(states) > 1 else next(iter(states.values()))
    checkpoint.write(target / f"model_epoch_{name}_optimizer_state.pth", kept)


def load_weights(module: nn.Module, path: Path) -> Path:
    """Load first weights from a file, or from the newest in a model folder; return the file.

    Raises:
        NotFound: there is no such file, or no weights in that folder.
        InvalidInput: the weights are of another model.
    """
    file = _weight_file(path)
    weights = torch.load(file, map_location="cpu", weights_only=True)
    try:
        module.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        message = f"{file} does not fit the model of this script: {error}"
        raise InvalidInput.at("RESUME_WEIGHT_PATH", message) from error
    return file


def export_onnx(module: nn.Module, inputs: Any, path: Path) -> str:
    """Write the module as ONNX and return a sentence about it; if that fails, the sentence says why."""
    missing = [name for name in ONNX_NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        return f"enable_onnx: not exported, {' and '.join(missing)} not installed (pip install {' '.join(ONNX_NEEDS)})"
    was_training = module.training
    module.eval()
    try:
        torch.onnx.export(module, (inputs,), str(path))
    except (torch.onnx.OnnxExporterError, RuntimeError, TypeError, ValueError) as error:
        return f"enable_onnx: not exported, the exporter refused the model: {error!s:.300}"
    finally:
        module.train(was_training)
    return f"enable_onnx: exported to {path}"


def pack_model(module: nn.Module, name: str, out_dir: str | Path) -> Path:
    """Write NAME.zip with everything in RESULT_DIR/model, or with the module's weights if there is nothing."""
    target = Path(out_dir) / f"{name}.zip"
    target.parent.mkdir(parents=True, exist_ok=True)
    result = os.environ.get("RESULT_DIR")
    folder = Path(result) / "model" if result else None
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder else []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            assert folder is not None
            archive.write(path, path.relative_to(folder))
        if not files:
            with archive.open("model.pt", "w", force_zip64=True) as stream:
                torch.save(module.state_dict(), stream)
    return target


def _weight_file(path: Path) -> Path:
    if path.is_file():
        return path
    candidates = [*path.glob("*.pth"), *path.glob("train/*.pth"), *path.glob("model.pt")]
    found = [(rank, file) for file in candidates if (rank := _rank(file.name)) is not None]
    if not found:
        raise NotFound(
            f"RESUME_WEIGHT_PATH is {path}, where there are no weights; give a .pth file or a folder with some"
        )
    return max(found)[1]


def _rank(name: str) -> int | None:
    if name in {FINAL, "model.pt"}:
        return 1 << 60
    match = _BY_EPOCH.fullmatch(name)
    return int(match[1]) if match else None
