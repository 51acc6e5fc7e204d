"""The manifest for KubeRay: Kubernetes would take it, and it says what a pool needs."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pliant.cluster.link.messages import AGENT_PORT
from pliant.entry.server.settings import DEFAULT_PORT, read_settings

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "examples" / "kuberay" / "raycluster.yaml"
SCHEMA = Path(__file__).with_name("raycluster-v1.schema.json")


@pytest.fixture
def cluster() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())
    return loaded


def containers(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    return [container for group in groups for container in group["template"]["spec"]["containers"]]


def test_it_is_a_cluster_of_kuberays(cluster: dict[str, Any]) -> None:
    jsonschema.validate(cluster, json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize("path", ["headGroupSpec", "workerGroupSpecs/0", "headGroupSpec/template/spec/containers/0"])
def test_a_field_that_there_is_none_of_would_be_seen(path: str, cluster: dict[str, Any]) -> None:
    place: Any = cluster["spec"]
    for part in path.split("/"):
        place = place[int(part) if part.isdigit() else part]
    place["replica"] = 1

    with pytest.raises(jsonschema.ValidationError, match="'replica' was unexpected"):
        jsonschema.validate(cluster, json.loads(SCHEMA.read_text()))


def test_the_server_takes_its_options_and_the_ports_are_those_it_listens_at(cluster: dict[str, Any]) -> None:
    head = containers(cluster)[0]
    command = re.search(r"pliant --home (\S+) up (.*?) &", head["args"][0])
    assert command is not None
    settings = read_settings(["--home", command[1], *shlex.split(command[2])], {})

    assert settings.cluster is not None
    assert settings.cluster.ray == "auto"
    (kind,), (group,) = settings.cluster.kinds, cluster["spec"]["workerGroupSpecs"]
    assert (kind.least, kind.most) == (group["minReplicas"], group["maxReplicas"])
    assert kind.num_slots == int(containers(cluster)[1]["resources"]["limits"]["nvidia.com/gpu"])
    assert json.loads(shlex.split(group["rayStartParams"]["resources"])[0]) == {"pliant": 1}
    assert cluster["spec"]["enableInTreeAutoscaling"]
    assert {port["containerPort"] for port in head["ports"]} > {DEFAULT_PORT, DEFAULT_PORT + 1, AGENT_PORT}


def test_every_pod_has_the_state_folder_at_one_path_and_starts_ray(cluster: dict[str, Any]) -> None:
    for container in containers(cluster):
        assert {"name": "state", "mountPath": "/pliant"} in container["volumeMounts"]
        assert container["args"][0].endswith("exec $KUBERAY_GEN_RAY_START_CMD")
    assert cluster["metadata"]["annotations"]["ray.io/overwrite-container-cmd"] == "true"


def test_it_names_the_ray_that_is_pinned(cluster: dict[str, Any]) -> None:
    pinned = (ROOT / "constraints.txt").read_text()
    assert f"ray=={cluster['spec']['rayVersion']}\n" in pinned
