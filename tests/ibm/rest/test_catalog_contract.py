"""Data sets, templates, models and trainings, called by IBM's own client over TLS against a real server."""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ibm_cloud_sdk_core import ApiException
from ibm_cloud_sdk_core.authenticators import BasicAuthenticator
from ibm_wmla.wmla_api_v1 import (
    CsvDetail,
    DatasetDetail,
    DeepLearningImpactV1,
    HyperParameter,
    ImageDetail,
    ModelDetail,
    ModelTemplateDetail,
    TrainDetail,
)
from PIL import Image
from tests.ibm.rest.conftest import TINY, Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

MAIN = TINY.replace(
    "edt.train(args.epochs, 8, 2)", "import pth_parameter_mgr as mgr\n    edt.train(mgr.getEpoch(), 8, 2)"
)
ENDLESS = "import time\nwhile True:\n    time.sleep(0.05)\n"
"""What is stopped before it ends, however late that is."""


@pytest.fixture
def admin(site: Site) -> DeepLearningImpactV1:
    """IBM's client, as the administrator with the token of the file."""
    return site.ibm(authenticator=BasicAuthenticator("admin", site.token))


@pytest.fixture
def data_root(site: Site) -> Path:
    return site.pool.home / "data"


def until(condition: Callable[[], Any], what: str, timeout_s: float = 60.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {timeout_s} s for: {what}"
        time.sleep(0.1)
    return found


def imported(client: DeepLearningImpactV1, name: str) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        found: dict[str, Any] = client.get_dataset_info(name).get_result()
        return None if found["status"] == "RUNNING" else found

    found = until(over, f"the import of {name}")
    assert found["status"] == "FINISHED", found["statusReason"]
    return dict(found)


def test_a_table_is_imported_and_shown(ibm: DeepLearningImpactV1, data_root: Path) -> None:
    rows = "".join(f"{number},{number / 2},{'ab'[number % 2]}\n" for number in range(20))
    (data_root / "table.csv").write_text("number,half,letter\n" + rows)
    made = ibm.add_dataset(
        "table", "CSV", "default", "CSV", trainpath=str(data_root / "table.csv"), shards=3,
        imagedetail=ImageDetail(valpercentage=20, testpercentage=0),
    ).get_result()  # fmt: skip
    assert made["notes"] == "shards has no effect: files are kept one by one"
    found = DatasetDetail.from_dict(imported(ibm, "table"))
    assert (found.create_user, found.datasourcetype, found.status) == ("ada", "CSV", "FINISHED")
    assert "table" in [one["name"] for one in ibm.get_full_dataset_details().get_result()]
    train = CsvDetail.from_dict(ibm.csv_list("table", "train", start="0", length="5").get_result())
    assert train.columns == ["number", "half", "letter"]
    assert len(train.data) == 5
    assert train.index == list("01234")
    number, half, letter = train.data[0]
    assert half == number / 2
    assert letter == "ab"[int(number) % 2]
    val = ibm.csv_list("table", "val").get_result()
    assert len(val["data"]) == 4
    assert ibm.csv_list("table", "test").get_result()["data"] == []
    with pytest.raises(ApiException, match="not images"):
        ibm.objectimage_list("table", "train")
    with pytest.raises(ApiException, match="none of train, val, test"):
        ibm.csv_list("table", "other")
    with pytest.raises(ApiException, match="not being imported") as stopped:
        ibm.stop_data_set("table")
    assert stopped.value.status_code == 400
    ibm.delete_dataset_info("table")
    with pytest.raises(ApiException) as gone:
        ibm.get_dataset_info("table")
    assert gone.value.status_code == 404


def test_images_are_imported_and_listed(ibm: DeepLearningImpactV1, data_root: Path) -> None:
    for label in ("cat", "dog"):
        folder = data_root / "pets" / label
        folder.mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (8, 6), (number * 20, 0, 0)).save(folder / f"{number}.png")
    detail = ImageDetail(
        trainimagepath=str(data_root / "pets"),
        width=4,
        height=4,
        resizetransformation="Crop",
        valpercentage=25,
        testpercentage=0,
    )
    ibm.add_dataset("pets", "Other", "default", "IMAGEFORCLASSIFICATION", imagedetail=detail)
    assert sorted(label for label, _ in imported(ibm, "pets")["trainlabels"]) == ["cat", "dog"]
    pictures = ibm.objectimage_list("pets", "train", start="0", length="100").get_result()
    assert pictures
    assert {one["labels"] for one in pictures} == {"cat", "dog"}
    assert ibm.objectimage_list("pets", "train", start="1", length="1").get_result() == pictures[1:2]


def test_what_is_no_data_set_is_refused(ibm: DeepLearningImpactV1) -> None:
    for kwargs, message in (
        ({"datasourcetype": "TAPE", "trainpath": "x"}, "is none of LMDB"),
        ({"datasourcetype": "OTHER"}, "it is missing"),
        ({"datasourcetype": "OTHER", "trainpath": "/etc"}, "not below the data root"),
        ({"datasourcetype": "OTHER", "trainpath": "nowhere"}, "there is nothing at"),
    ):
        with pytest.raises(ApiException, match=message) as error:
            ibm.add_dataset("wrong", "Other", "default", **kwargs)
        assert error.value.status_code == 400


def test_a_program_gets_its_data_set(site: Site, ibm: DeepLearningImpactV1, data_root: Path) -> None:
    (data_root / "plain").mkdir()
    (data_root / "plain" / "hello.txt").write_text("hi from the data")
    (data_root / "loose").mkdir()
    (data_root / "loose" / "hello.txt").write_text("hi from a folder")
    ibm.add_dataset("kept", "Other", "default", "OTHER", trainpath="plain")
    imported(ibm, "kept")
    script = "import os\nprint(open(os.environ['DATA_DIR'] + '/hello.txt').read())\n"
    for path, expected in (("kept", "hi from the data"), ("loose", "hi from a folder")):
        args = f"--exec-start PyTorch --model-main show.py --cs-datastore-meta type=fs,data_path={path}"
        made = site.start(ibm, args, script)
        site.until(ibm, made["id"], "FINISHED")
        assert expected in ibm.get_platform_rest_deeplearning_exec_log(made["id"]).get_result()


@pytest.fixture(scope="module")
def modelled(site: Site, tmp_path_factory: pytest.TempPathFactory) -> tuple[DeepLearningImpactV1, Path]:
    """The administrator's client, and a folder with code that a template can be made of."""
    folder = tmp_path_factory.mktemp("code")
    (folder / "main.py").write_text(MAIN)
    (folder / "part").mkdir()
    (folder / "part" / "notes.txt").write_text("notes")
    return site.ibm(authenticator=BasicAuthenticator("admin", site.token)), folder


def test_templates_are_made_changed_and_removed(
    site: Site, ibm: DeepLearningImpactV1, modelled: tuple[DeepLearningImpactV1, Path]
) -> None:
    admin, folder = modelled
    admin.add_model_template("sketch", str(folder), "PyTorch", description="first")
    shown = ModelTemplateDetail.from_dict(admin.get_model_template_by_name("sketch").get_result())
    assert (shown.framework, shown.description, shown.tfmain_content) == ("PyTorch", "first", MAIN)
    assert "sketch" in [one["name"] for one in admin.get_model_template_details(framework="pytorch").get_result()]
    assert admin.get_model_template_details(framework="Caffe").get_result() == []
    files = admin.get_model_template_files("sketch").get_result()
    assert files == ["sketch/main.py", "sketch/part/notes.txt"]
    with site.plain(auth=("admin", site.token)) as http:
        base = "/platform/rest/deeplearning/v1/modeltemplates/files"
        assert http.get(f"{base}/sketch/part/notes.txt").text == "notes"
    assert "FabricModel" in text_of(admin.get_model_template_file_content_by_name(files[0]))
    admin.update_model_template("sketch", description="second", tfmain_content="print('changed')\n")
    changed = admin.get_model_template_by_name("sketch").get_result()
    assert (changed["description"], changed["tfmainContent"]) == ("second", "print('changed')\n")
    assert admin.get_model_template_files("sketch").get_result() == files
    with pytest.raises(ApiException, match="only who runs the server"):
        ibm.add_model_template("mine", str(folder), "PyTorch")
    with pytest.raises(ApiException, match="server's own files"):
        admin.add_model_template("secrets", str(site.pool.home), "PyTorch")
    with pytest.raises(ApiException, match="not a folder here"):
        admin.add_model_template("nothing", "/no/such/folder", "PyTorch")
    with pytest.raises(ApiException, match="already"):
        admin.add_model_template("sketch", str(folder), "PyTorch")
    admin.delete_model_template("sketch")
    with pytest.raises(ApiException) as gone:
        admin.get_model_template_by_name("sketch")
    assert gone.value.status_code == 404


def text_of(response: Any) -> str:
    result = response.get_result()
    return result if isinstance(result, str) else str(result.text)


def test_a_model_is_made_trained_and_trained_on(site: Site, modelled: tuple[DeepLearningImpactV1, Path]) -> None:
    admin, folder = modelled
    admin.add_model_template("digits", str(folder), "PyTorch")
    hyper = HyperParameter(
        learningrate=0.05,
        epoch=2,
        solvertype="SGD (Cf and PT)",
        momentum=0.5,
        lrpolicy="fixed (Cf, TF and PT)",
        maxiteration=9,
    )
    made = admin.add_model(
        "m", "digits", description="d", accelerator="Elastic", hyperparameter=hyper, batchsize=16, type="Training"
    ).get_result()
    assert made["notes"] == (
        "hyperparameter maxiteration has no effect: PyTorch has none, or the program sets it itself"
    )
    shown = ModelDetail.from_dict(admin.get_model_by_name("m").get_result())
    assert (shown.templatename, shown.accelerator, shown.batchsize) == ("digits", "Elastic", 16)
    assert (shown.hyperparameter.learningrate, shown.hyperparameter.epoch) == (0.05, 2)
    assert [one["name"] for one in admin.get_models().get_result()] == ["m"]
    assert admin.get_model_files("m").get_result() == ["m/main.py", "m/part/notes.txt"]
    assert text_of(admin.get_model_file_content_by_name("m/main.py")) == MAIN
    admin.update_model("m", description="better", hyperparameter=HyperParameter(epoch=1))
    assert admin.get_model_by_name("m").get_result()["hyperparameter"]["epoch"] == 1
    admin.save_model_file_content_by_name("m", tmpfile_path="part/notes.txt", tmpfile_content="new")
    assert text_of(admin.get_model_file_content_by_name("m/part/notes.txt")) == "new"

    weights = io.BytesIO()
    torch.save(torch.nn.Linear(4, 2).state_dict(), weights)
    uploaded = admin.upload_wf(io.BytesIO(weights.getvalue())).get_result()["name"]
    started = admin.start_model_training(
        "m", "one", "PyTorchOnElastic", 2, wfinit=uploaded, test_interval=100, sync_mode="ASYNC"
    ).get_result()
    assert len(started["notes"].splitlines()) == 2
    detail = TrainDetail.from_dict(ended(admin, "one"))
    assert (detail.model, detail.training_parameters.status, detail.training_parameters.progress) == (
        "m",
        "FINISHED",
        100,
    )
    assert detail.training_parameters.cluster_size == 2
    assert detail.training_parameters.appid.startswith("app-")
    assert admin.get_model_training_names("m").get_result() == ["one"]
    assert len(admin.get_model_trainings("m").get_result()) == 1
    files = admin.get_model_training_weightfiles("m", "one").get_result()
    assert {"model.pt", "train/model_epoch_final.pth"} <= set(files)
    admin.save_model_file_content_by_name("m", tmpfile_path="main.py", tmpfile_content=ENDLESS)
    admin.start_model_training("m", "two", "PyTorch", 1, wfinit="one")
    with pytest.raises(ApiException, match=r"runs as wmla-|is being trained"):
        admin.delete_model("m")
    admin.stop_model_training("m", "two")
    ended(admin, "two", "KILLED")
    for wrong, message in (
        ({"wtfolder": "/x"}, "not fetched from elsewhere"),
        ({"wfinit": "nothing"}, "no training 'nothing'"),
    ):
        with pytest.raises(ApiException, match=message):
            admin.start_model_training("m", "three", "PyTorch", 1, **wrong)
    admin.del_model_training("m", "two")
    assert admin.get_model_training_names("m").get_result() == ["one"]
    admin.delete_model("m")
    with pytest.raises(ApiException):
        admin.get_model_by_name("m")


def ended(client: DeepLearningImpactV1, training: str, *states: str) -> dict[str, Any]:
    """Wait for the end of a training of the model m; return its description."""

    def over() -> dict[str, Any] | None:
        found: dict[str, Any] = client.get_model_trainingby_name("m", training).get_result()
        return found if found["trainingParameters"]["status"] in ("FINISHED", "ERROR", "KILLED") else None

    found = until(over, f"the end of {training}")
    assert found["trainingParameters"]["status"] in (states or ("FINISHED",)), found
    return dict(found)


def test_wrong_models_are_refused(site: Site, admin: DeepLearningImpactV1) -> None:
    for kwargs, message in (
        ({"templatename": "none"}, "there is no template 'none'"),
        ({"templatename": "x", "accelerator": "Warp"}, "none of Single, Native, Elastic"),
        ({"templatename": "x", "type": "Inference"}, "models that answer are deployed below /dlim/v1"),
        ({"templatename": "x", "sig": "nobody"}, "Instance group name nobody not found"),
        ({"templatename": "x", "batchsize": -1}, "batchsize: -1 is too small"),
    ):
        with pytest.raises(ApiException, match=message) as error:
            admin.add_model("wrong", **kwargs)
        assert error.value.status_code == 400
    with pytest.raises(ApiException, match="no file that torch"):
        admin.upload_wf(io.BytesIO(b"not weights"))
