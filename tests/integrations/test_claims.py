"""Where a loop of another library cannot be exact, the job says so, and why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.integrations.modules import HUSHED, Net, loader, make_trainer
from tests.integrations.transformers.small import make, small_gpt
from tests.train.loops import training_context

from pliant.core.link import Claimed
from pliant.integrations.lightning import ElasticStrategy
from pliant.integrations.transformers import elastic

pytestmark = [pytest.mark.timeout(120), *HUSHED]


def count_in_a_large_buffer(module: Any) -> None:
    """Let every forward pass change a buffer that is too large to travel with every step."""
    module.register_buffer("seen", torch.zeros(5000))

    def count(one: Any, _: Any) -> None:
        one.seen += one.training

    module.register_forward_pre_hook(count)


def train_a_trainer(folder: Path) -> None:
    model = small_gpt()
    count_in_a_large_buffer(model.transformer.wte)
    elastic(make(folder, model=model, num_train_epochs=1)).train()


def train_a_module(folder: Path) -> None:
    module = Net()
    count_in_a_large_buffer(module.net)
    make_trainer(strategy=ElasticStrategy(), max_epochs=1, default_root_dir=folder).fit(module, loader())


@pytest.mark.parametrize("train", [train_a_trainer, train_a_module])
def test_a_training_that_is_statistical_says_why(train: Callable[[Path], None], tmp_path: Path) -> None:
    told: list[Any] = []
    with training_context(told) as context:
        context.result_dir = tmp_path / "result"
        train(tmp_path)
    claims = [message for message in told if isinstance(message, Claimed)]
    assert claims[-1].claim == "statistical"
    assert "seen changes in a forward pass and is too large to travel" in claims[-1].reason
