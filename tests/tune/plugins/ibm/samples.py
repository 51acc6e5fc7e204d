"""Plug-ins of IBM's form, each as people write them."""

from typing import Final

HEAD: Final = """
import random
import numpy as np
from plugins.core.base_plugin_opt import BasePluginOptimizer
from plugins.core.logger import logger


def drawn(one, draw):
    if one["type"] == "Discrete":
        field = {"INT": "discreteIntVal", "DOUBLE": "discreteDbVal", "STR": "discreateStrVal"}[one["dataType"]]
        return one[field][int(draw() * len(one[field]))]
    if one["dataType"] == "INT":
        num = (one["maxIntVal"] - one["minIntVal"]) // one.get("step", 1) + 1
        return np.int64(one["minIntVal"] + int(draw() * num) * one.get("step", 1))
    if "step" in one:
        num = round((one["maxDbVal"] - one["minDbVal"]) / one["step"]) + 1
        return one["minDbVal"] + int(draw() * num) * one["step"]
    return np.float64(one["minDbVal"] + draw() * (one["maxDbVal"] - one["minDbVal"]))
"""

SHARED: Final = f"""{HEAD}
class PluginOptimizer(BasePluginOptimizer):
    \"\"\"Draws from numpy's shared generator, and near the best so far: without a state of its own.\"\"\"

    def __init__(self, name, hyper_parameters, **kwargs):
        super().__init__(name, hyper_parameters, **kwargs)
        self.best, self.least = None, None
        logger.info("hyper parameters: %s, %s", hyper_parameters, kwargs)

    def search(self, number_samples, last_exp_results=None):
        for result in last_exp_results or []:
            if result["state"] == "FINISHED" and (self.least is None or result["metricVal"] < self.least):
                self.best, self.least = result["values"], result["metricVal"]
        if self.best is not None and random.random() < 0.3:
            return [dict(self.best)]
        return [{{one["name"]: drawn(one, np.random.rand) for one in self.hyper_parameters}} for _ in range(2)]
"""

KEPT: Final = f"""{HEAD}
class PluginOptimizer(BasePluginOptimizer):
    \"\"\"Has a generator of its own, arrays, and a state; takes from the shared generator as well.\"\"\"

    def __init__(self, name, hyper_parameters, **kwargs):
        super().__init__(name, hyper_parameters, **kwargs)
        self.rng = np.random.default_rng(int(kwargs.get("seed", "5")))
        self.seen = np.zeros(3)
        self.history = []

    def search(self, number_samples, last_exp_results):
        for result in last_exp_results or []:
            self.history.append((result["id"], result["metricVal"]))
            self.seen[result["id"] % 3] += 1
        draw = np.random.rand if self.seen.argmax() == 1 else self.rng.random
        return [{{one["name"]: drawn(one, draw) for one in self.hyper_parameters}}]

    def get_state(self):
        return {{"rng": self.rng.bit_generator.state, "seen": self.seen, "history": self.history}}

    def set_state(self, state):
        self.rng.bit_generator.state = state["rng"]
        self.seen, self.history = state["seen"], state["history"]
"""

GRID: Final = f"""{HEAD}
import itertools


class PluginOptimizer(BasePluginOptimizer):
    \"\"\"All combinations of three points of each, then nothing more.\"\"\"

    def __init__(self, name, hyper_parameters, **kwargs):
        super().__init__(name, hyper_parameters, **kwargs)
        axes = [[drawn(one, lambda: at) for at in (0.0, 0.5, 0.99)] for one in hyper_parameters]
        names = [one["name"] for one in hyper_parameters]
        self.left = [dict(zip(names, values)) for values in itertools.product(*axes)]

    def search(self, number_samples, last_exp_results=None):
        answer, self.left = self.left[:number_samples], self.left[number_samples:]
        return answer
"""

UNREPEATABLE: Final = f"""{HEAD}
import os


class PluginOptimizer(BasePluginOptimizer):
    def search(self, number_samples, last_exp_results=None):
        return [{{one["name"]: drawn(one, lambda: os.urandom(1)[0] / 256) for one in self.hyper_parameters}}]
"""


def answering(answer: str, before: str = "") -> str:
    """Return a plug-in whose `search` returns an expression."""
    return f"""
import numpy as np
from plugins.core.base_plugin_opt import BasePluginOptimizer
{before}


class PluginOptimizer(BasePluginOptimizer):
    def search(self, number_samples, last_exp_results=None):
        return {answer}
"""
