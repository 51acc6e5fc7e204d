"""What nodes of Ray's are called in the pool."""

import pytest

pytest.importorskip("ray")

from pliant.cluster.ray.membership import name_for


def test_a_node_is_called_as_its_host_and_a_second_one_there_gets_a_number() -> None:
    assert name_for("gpu7.example.org", "ab12cd34ef", set()) == "gpu7"
    assert name_for("gpu7", "ab12cd34ef", {"gpu7", "gpu7-2"}) == "gpu7-3"


@pytest.mark.parametrize("host", ["local", "", "-x", "ä"])
def test_a_host_whose_name_no_machine_may_have_is_called_by_rays_number(host: str) -> None:
    assert name_for(host, "ab12cd34ef", set()) == "ray-ab12cd34"
