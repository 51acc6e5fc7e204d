"""A real S3 server of a test's own (moto's, in memory), behind a proxy that makes it go away and come back."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import boto3
from tests.cluster.joined.proxy import Proxy

BUCKET: Final = "results"
SECRET: Final = "sesame-of-the-store"
"""The key that the server has and nobody else may see."""
_START_S: Final = 50.0


class S3:
    """The server, and a look at what it holds."""

    def __init__(self, port: int, proxy: Proxy) -> None:
        self.proxy = proxy
        self.prefix = ""
        """Below which a test has its objects, if it says so."""
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}",
            "AWS_ACCESS_KEY_ID": "pliant-tests",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id="look",
            aws_secret_access_key="look",
            region_name="us-east-1",
        )

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys of all objects that begin so."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))

    def read(self, key: str) -> bytes:
        """Return what an object holds."""
        content: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return content

    def unfinished(self) -> list[str]:
        """Return the keys of objects of which there are parts only."""
        return [upload["Key"] for upload in self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])]


@contextmanager
def s3_server(folder: Path) -> Iterator[S3]:
    """Start one with an empty bucket; its words are in a file of the folder."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = [sys.executable, "-P", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=env)
    try:
        _wait_for(port, process)
        proxy = Proxy(port)
        try:
            s3 = S3(port, proxy)
            s3.client.create_bucket(Bucket=BUCKET)
            yield s3
            s3.client.close()
        finally:
            proxy.close()
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise AssertionError("the S3 server does not listen")
