"""The files of a training."""

import zipfile
from pathlib import Path

import pytest
import torch

from pliant.core.errors import InvalidInput, NotFound
from pliant.ibm.modules.pyedt.saving import export_onnx, load_weights, pack_model, save_weights


def module(value: float = 0.0) -> torch.nn.Linear:
    made = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(made.weight, value)
    return made


def optimizer(of: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(of.parameters(), lr=0.1)


def test_weights_and_optimizer_state_lie_side_by_side(tmp_path: Path) -> None:
    trained = module(0.5)

    save_weights(trained, {"0": optimizer(trained)}, tmp_path, "3")

    assert sorted(path.name for path in (tmp_path / "train").iterdir()) == [
        "model_epoch_3.pth",
        "model_epoch_3_optimizer_state.pth",
    ]
    weights = torch.load(tmp_path / "train" / "model_epoch_3.pth", weights_only=True)
    assert torch.equal(weights["weight"], trained.weight)


def test_first_weights_come_from_a_file(tmp_path: Path) -> None:
    torch.save(module(0.25).state_dict(), tmp_path / "any.pth")
    fresh = module()

    load_weights(fresh, tmp_path / "any.pth")

    assert fresh.weight[0, 0] == 0.25


@pytest.mark.parametrize(
    ("names", "chosen"),
    [(["2", "10", "9"], "10"), (["2", "final"], "final")],
)
def test_first_weights_come_from_the_newest_in_a_folder(tmp_path: Path, names: list[str], chosen: str) -> None:
    for place, name in enumerate(names):
        given = module(float(place))
        save_weights(given, {"0": optimizer(given)}, tmp_path, name)
    fresh = module(-1.0)

    file = load_weights(fresh, tmp_path)

    assert file.name == f"model_epoch_{chosen}.pth"
    assert fresh.weight[0, 0] == names.index(chosen)


def test_missing_weights_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"RESUME_WEIGHT_PATH is .*, where there are no weights"):
        load_weights(module(), tmp_path / "none")


def test_weights_of_another_model_are_told(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(3, 3).state_dict(), tmp_path / "any.pth")

    with pytest.raises(InvalidInput, match="does not fit the model of this script"):
        load_weights(module(), tmp_path / "any.pth")


def test_the_zip_holds_the_model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESULT_DIR", str(tmp_path))
    trained = module()
    save_weights(trained, {"0": optimizer(trained)}, tmp_path / "model", "final")

    packed = pack_model(trained, "job-1", tmp_path / "out")

    assert packed == tmp_path / "out" / "job-1.zip"
    assert zipfile.ZipFile(packed).namelist() == [
        "train/model_epoch_final.pth",
        "train/model_epoch_final_optimizer_state.pth",
    ]


def test_without_a_result_folder_the_zip_holds_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESULT_DIR", raising=False)
    trained = module(0.5)

    with zipfile.ZipFile(pack_model(trained, "local", tmp_path)) as archive, archive.open("model.pt") as stream:
        weights = torch.load(stream, weights_only=True)

    assert torch.equal(weights["weight"], trained.weight)


def test_an_export_that_cannot_be_made_is_told_and_harms_nothing(tmp_path: Path) -> None:
    trained = module().train()

    told = export_onnx(trained, torch.zeros(1, 2), tmp_path / "model.onnx")

    assert told.startswith("enable_onnx: ")
    assert (tmp_path / "model.onnx").exists() or "not exported" in told
    assert trained.training
