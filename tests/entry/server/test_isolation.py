"""What an operator says about walls around people's code, and which servers do not start without them."""

import os
import shutil
from pathlib import Path

import pytest

from pliant.core.errors import InvalidInput, Unavailable
from pliant.core.job import NodeId
from pliant.core.plan import NodeView
from pliant.entry.server.isolation import check_walls, max_disk_bytes, why_alone
from pliant.entry.server.settings import read_settings

WHOLE = NodeView(id=NodeId("whole"), slots=(0,), walls=("Landlock 7",))
LACKING = NodeView(id=NodeId("old"), slots=(0,), missing_walls=("this kernel has no Landlock",))


def test_by_default_everybody_gets_an_id_if_root_starts_the_server() -> None:
    settings = read_settings([], {})

    assert (settings.isolation, settings.trust_everyone) == ("auto", False)
    assert settings.uids == (range(60706, 61184) if os.geteuid() == 0 else None)
    assert settings.may_read == settings.may_write == settings.pass_env == ()


def test_folders_and_variables_are_added_by_name() -> None:
    settings = read_settings(["--allow", "/usr", "--allow", "/tmp:rw", "--pass-env", "WANDB_API_KEY"], {})

    assert (settings.may_read, settings.may_write) == (("/usr",), (os.path.realpath("/tmp"),))
    assert settings.pass_env == ("WANDB_API_KEY",)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--uids", "9", "'9' is no range of ids; give FIRST-LAST"),
        ("--uids", "0-5", "is no range of ids"),
        ("--uids", "9-5", "is no range of ids"),
        ("--allow", "data", "'data' is not there; give the whole path"),
        ("--allow", "/no/such/folder:rw", "'/no/such/folder' is not there"),
        ("--max-disk", "much", "'much' is no size; give one like 4GB or 512MiB"),
        ("--max-disk", "0", "'0' is out of range; give 1.0 MiB or more, such as 500GiB, or off"),
        ("--max-disk", "9999999T", "is out of range"),
        ("--pass-env", "*_KEY", "is no name of a variable"),
        ("--pass-env", "PLIANT_DATABASE", "Pliant's own"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(option: str, value: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_settings([option, value], {})

    assert [problem.field for problem in refused.value.problems] == [option]
    assert message in refused.value.problems[0].message


@pytest.mark.parametrize(
    ("options", "num_bytes"),
    [(["--max-disk", "500GiB"], 500 << 30), (["--max-disk=2GB"], 2 * 10**9), (["--max-disk", "off"], None)],
)
def test_a_job_may_have_as_much_of_the_disk_as_the_operator_says(
    options: list[str], num_bytes: int | None, tmp_path: Path
) -> None:
    assert max_disk_bytes(read_settings(options, {}).max_disk, tmp_path) == num_bytes


def test_by_default_a_job_may_have_a_tenth_of_the_disk(tmp_path: Path) -> None:
    found = max_disk_bytes(read_settings([], {}).max_disk, tmp_path)

    assert found is not None
    assert found == pytest.approx(shutil.disk_usage(tmp_path).total / 10, abs=10)


def test_where_isolation_is_required_a_machine_without_it_is_refused() -> None:
    check_walls("required", [WHOLE])
    check_walls("auto", [WHOLE, LACKING])
    with pytest.raises(Unavailable, match="node old lacks a wall: this kernel has no Landlock"):
        check_walls("required", [WHOLE, LACKING])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_on_its_own_machine_a_server_may_serve_several_people_without_walls(host: str) -> None:
    assert why_alone(host, trusted=False, nodes=[LACKING]) == ""


def test_beyond_its_machine_it_serves_one_person_unless_its_operator_trusts_all() -> None:
    why = why_alone("0.0.0.0", trusted=False, nodes=[WHOLE, LACKING])

    assert "walls are missing on old (this kernel has no Landlock)" in why
    assert "--trust-everyone" in why
    assert why_alone("0.0.0.0", trusted=True, nodes=[LACKING]) == ""
    assert why_alone("0.0.0.0", trusted=False, nodes=[WHOLE]) == ""
