"""Packages of models as IBM's clients send them, and a server with its endpoints, for tests of its inference API."""

import io
import json
import tarfile
from typing import Any

from ibm_cloud_sdk_core.authenticators import BearerTokenAuthenticator
from ibm_wmla.wmla_api_edi_v2 import ElasticDistributedInferenceV2
from tests.server.conftest import TOKEN, Served

KERNEL = """
import redhareapiversion
from redhareapi import Kernel


class PingpongKernel(Kernel):
    def on_kernel_start(self, kernel_context):
        Kernel.log_info("start")

    def on_task_invoke(self, task_context):
        while task_context != None:
            task_context.set_output_data(task_context.get_input_data())
            task_context = task_context.next()

    def on_kernel_shutdown(self):
        pass


if __name__ == "__main__":
    PingpongKernel().run()
"""
"""IBM's sample that gives back what it is sent."""


def package(name: str = "pingpong", *, folder: str = "", readme: str = "# Ping\n", **said: Any) -> io.BytesIO:
    """Return a package of the kernel, with this in its `model.json`."""
    described = {"name": name, "tag": "test", "kernel_path": "kernel.py", "runtime": "dlipy3", "weight_path": "./"}
    files = {"model.json": json.dumps({**described, **said}), "kernel.py": KERNEL, "README.md": readme}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{folder}{path}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    out.seek(0)
    return out


def client_of(server: Served, token: str = TOKEN) -> ElasticDistributedInferenceV2:
    """Return IBM's client of a server."""
    found = ElasticDistributedInferenceV2(authenticator=BearerTokenAuthenticator(token))
    found.set_service_url(f"http://{server.address}")
    return found
