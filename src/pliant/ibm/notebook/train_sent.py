"""Trains what a notebook has sent. `shipment` puts a copy of this file into the code of the job."""

import json
import sys
from pathlib import Path

import torch

from fabric_model import FabricModel


def main() -> None:
    """Read what the notebook's `train` was called with, and call it."""
    sent = Path(__file__).resolve().parent / "sent"
    python = tuple(json.loads((sent / "python.json").read_text()))
    if sys.version_info[:2] != python:
        raise SystemExit(
            f"the notebook has Python {python[0]}.{python[1]} and this job Python {sys.version_info[0]}."
            f"{sys.version_info[1]}, which cannot read its functions; start the notebook with the server's Python, "
            "or give the job one of the notebook's version: train(..., submit={'environment': NAME})"
        )
    call = torch.load(sent / "call.pt", map_location="cpu", weights_only=False)  # its owner's own, as this file is
    FabricModel(**call["model"]).train(**call["train"])


if __name__ == "__main__":
    main()
