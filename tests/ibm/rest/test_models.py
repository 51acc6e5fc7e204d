"""Templates and models in IBM's words, over the simulator's cluster."""

from pathlib import Path

from ibm_wmla.wmla_api_v1 import DeepLearningImpactV1
from tests.server.played import Played

from pliant.core.job_filter import EVERY_JOB


def scripts(played: Played) -> list[str]:
    """Return what the jobs of all trainings run, in the order of their submission."""
    return [job.spec.script for job in reversed(played.control.queries.page(EVERY_JOB, None, 100).jobs)]


def test_the_main_file_of_a_template_depends_on_the_engine(
    played: Played, client: DeepLearningImpactV1, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text("print('one')\n")
    (tmp_path / "elastic-main.py").write_text("print('many')\n")
    client.add_model_template("digits", str(tmp_path), "PyTorch")
    for accelerator in ("Single", "Elastic", "Native"):
        made = client.add_model(accelerator, "digits", accelerator=accelerator, batchsize=8).get_result()
        assert made["tfmainpath"] == ("elastic-main.py" if accelerator == "Elastic" else "main.py")
        client.start_model_training(accelerator, "first", "PyTorch", 1)
    assert scripts(played) == ["main.py", "elastic-main.py", "main.py"]
    assert client.get_model_by_name("Elastic").get_result()["tfmainContent"] == "print('many')\n"
    client.update_model("Elastic", tfmain_content="print('changed')\n")
    assert client.get_model_by_name("Elastic").get_result()["tfmainContent"] == "print('changed')\n"
    assert client.get_model_template_by_name("digits").get_result()["tfmainContent"] == "print('one')\n"


def test_a_template_without_a_file_for_one_worker_is_elastic(
    played: Played, client: DeepLearningImpactV1, tmp_path: Path
) -> None:
    (tmp_path / "elastic-main.py").write_text("print('many')\n")
    (tmp_path / "other.py").write_text("print('other')\n")
    made = client.add_model_template("digits", str(tmp_path), "PyTorch").get_result()
    assert (made["tfmainpath"], made["accelerators"]) == ("elastic-main.py", ["elastic"])
    assert client.add_model("m", "digits", batchsize=8).get_result()["accelerator"] == "Elastic"
    client.update_model_template("digits", tfmainpath="other.py")
    assert client.get_model_template_by_name("digits").get_result()["tfmainContent"] == "print('other')\n"
