"""Ada's model: it answers with her secret, doubles arrays, and takes as long as it is asked to."""

import os
import time
from pathlib import Path
from typing import Any

SECRET = os.environ["ADAS_SECRET"]


class Model:
    """Hers alone."""

    inputs = ({"name": "x", "datatype": "FP32", "shape": [-1]},)

    def load(self) -> None:
        for path in (Path("/tmp/adas-kernel"), Path("/dev/shm/adas-kernel"), Path(os.environ["RESULT_DIR"], "secret")):
            path.write_text(SECRET)

    def predict(self, batch: list[Any]) -> list[Any]:
        return [self._answer(one) for one in batch]

    def _answer(self, one: Any) -> Any:
        if "x" in one:
            return {"y": one["x"] * 2}
        time.sleep(float(one.get("seconds", 0)))
        return {"value": one["value"] * 2, "secret": SECRET}
