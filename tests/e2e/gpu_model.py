"""A model on a GPU: it multiplies there, and takes of its memory what it is asked to; deployed as `serve.py`."""

import os
from typing import Any

import torch


class Model:
    raw = True

    def load(self) -> None:
        self.factor = torch.tensor(2.0, device="cuda")
        self.taken: list[torch.Tensor] = []

    def predict(self, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [self._answer(one) for one in batch]

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("without_limit"):
            torch.cuda.set_per_process_memory_fraction(1.0)
        if "take" in asked:  # this part of the GPU
            total = torch.cuda.get_device_properties(0).total_memory
            try:
                self.taken.append(torch.ones(int(total * asked["take"]), dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError as error:
                return {"refused": str(error)}
            return {"pid": os.getpid()}
        x = torch.tensor(asked["value"], device="cuda")
        return {"value": (x * self.factor).item(), "device": torch.cuda.get_device_name(), "pid": os.getpid()}
