"""One `pliant up --tls` for all contract tests of IBM's API, and IBM's own client of it."""

import io
import json
import os
import ssl
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import pytest
from ibm_cloud_sdk_core.authenticators import Authenticator, BasicAuthenticator, BearerTokenAuthenticator
from ibm_wmla.wmla_api_v1 import DeepLearningImpactV1
from tests.e2e.pool import Pool
from tests.server.played import Played

from pliant.core.errors import InvalidInput

DEEP_LEARNING = "/platform/rest/deeplearning/v1"
CONDUCTOR = "/platform/rest/conductor/v1"
PASSWORD = "correct horse battery"
TINY = """
import argparse

import torch
from edtcallback import EDTLoggerCallback
from fabric_model import FabricModel


def data():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(64, 4, generator=generator)
    both = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
    return both, both


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--pace", default=None)
    args, _ = parser.parse_known_args()
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    edt = FabricModel(model, data, torch.nn.functional.cross_entropy, optimizer, driver_logger=EDTLoggerCallback())
    edt.train(args.epochs, 8, 2)
"""
"""An elastic training with FabricModel, over in a second or two."""


class Site:
    """A server with TLS, its administrator, and clients that trust its certificate."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        record = json.loads((pool.home / "server.json").read_text())
        self.url: str = record["url"]
        self.certificate: str = record["certificate"]
        self.token = (pool.home / "token").read_text().strip()
        self.http = self.plain({"Authorization": f"Bearer {self.token}"})
        for name, role in (("ada", "user"), ("ben", "user"), ("vic", "viewer")):
            made = self.http.post("/v1/users", json={"name": name, "role": role, "password": PASSWORD})
            assert made.status_code == 201, made.text

    def plain(self, headers: Mapping[str, str] | None = None, auth: tuple[str, str] | None = None) -> httpx.Client:
        """Return a client that shows what it is given and nothing else."""
        return httpx.Client(
            base_url=self.url, verify=_trusting(self.certificate), headers=headers, auth=auth, timeout=60
        )

    def ibm(self, name: str = "ada", authenticator: Authenticator | None = None) -> DeepLearningImpactV1:
        """Return IBM's client of a user; it verifies the certificate by REQUESTS_CA_BUNDLE."""
        client = DeepLearningImpactV1(authenticator=authenticator or BasicAuthenticator(name, PASSWORD))
        client.set_service_url(self.url)
        return client

    def start(
        self, client: DeepLearningImpactV1, args: str, content: bytes | str = TINY, group: str = "default"
    ) -> dict[str, Any]:
        """Start an exec; return its description."""
        file = io.BytesIO(content.encode() if isinstance(content, str) else content)
        made: dict[str, Any] = client.create_exec(group, args, file).get_result()
        return made

    def until(self, client: DeepLearningImpactV1, exec_id: str, state: str, timeout_s: float = 90.0) -> dict[str, Any]:
        """Wait until an exec is in a state; return its description."""
        deadline = time.monotonic() + timeout_s
        while True:
            found: dict[str, Any] = client.get_exec(exec_id).get_result()
            if found["state"] == state:
                return found
            over = found["state"] in ("FINISHED", "ERROR", "KILLED")
            assert not over, f"{exec_id} is {found['state']}, not {state}: {found['stateReason']}"
            assert time.monotonic() < deadline, f"{exec_id} is still {found['state']}: {found['stateReason']}"
            time.sleep(0.1)


def _trusting(certificate: str) -> Any:
    return ssl.create_default_context(cafile=certificate)


def packed(files: Mapping[str, str], *, mode: str = "w", executable: tuple[str, ...] = ()) -> bytes:
    """Return a tar of files as IBM's clients make it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            info.mode = 0o755 if name in executable else 0o644
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def outcome(call: Callable[..., Any], *given: Any) -> Any:
    """Return what a call returns, or why it was refused; any other error is one of the test."""
    try:
        return call(*given)
    except InvalidInput as error:
        return error


@pytest.fixture
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A server over the simulator's cluster, whose tasks are played."""
    server = Played(tmp_path_factory.mktemp("played"))
    yield server
    server.close()


@pytest.fixture
def client(played: Played) -> DeepLearningImpactV1:
    """IBM's client of that server, as its administrator."""
    found = DeepLearningImpactV1(authenticator=BearerTokenAuthenticator(played.token))
    found.set_service_url(played.url)
    return found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    pool = Pool(tmp_path_factory.mktemp("wmla") / "home", slots=4, options=("--tls",))
    pool.up()
    found = Site(pool)
    before = os.environ.get("REQUESTS_CA_BUNDLE")
    os.environ["REQUESTS_CA_BUNDLE"] = found.certificate
    yield found
    os.environ.pop("REQUESTS_CA_BUNDLE")
    if before is not None:
        os.environ["REQUESTS_CA_BUNDLE"] = before
    found.http.close()
    pool.close()


@pytest.fixture
def ibm(site: Site) -> DeepLearningImpactV1:
    """IBM's client, as the user ada."""
    return site.ibm()


@pytest.fixture(scope="session")
def trained(site: Site) -> dict[str, Any]:
    """An exec of ada's that has finished, with all its processes: elastic, on two workers at most."""
    client = site.ibm()
    args = "--exec-start edtPyTorch --model-main tiny.py --numWorker 2 --appName tiny --epochs 2"
    found = site.until(client, site.start(client, args)["id"], "FINISHED")

    def gone() -> bool:
        (app,) = client.get_applications(applicationid=found["appId"]).get_result()
        return all(one["endtime"] for one in app["executors"])

    site.pool.until(gone, "its processes have printed their last and ended")
    return found
