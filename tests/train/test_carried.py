"""A script that carries the state of an RNN from batch to batch is refused; what is no such thing is not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from tests.train.loops import make, run_of, training_context
from torch import nn

from pliant.train import Run, TrainingError


@pytest.fixture(autouse=True)
def _training_context() -> Iterator[None]:
    with training_context():
        yield


class Reader(nn.Module):
    """Two RNNs one after the other, the second from the state of the first, or from what is given."""

    def __init__(self, kind: Callable[..., nn.RNNBase]) -> None:
        super().__init__()
        self.encoder, self.rnn, self.out = kind(6, 4, batch_first=True), kind(6, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, hidden: Any = None) -> tuple[torch.Tensor, Any]:
        found = self.encoder(x[:, None])[1]
        output, hidden = self.rnn(x[:, None], found if hidden is None else hidden)
        return self.out(output[:, -1]), hidden


def detached(hidden: Any) -> Any:
    return tuple(one.detach() for one in hidden) if isinstance(hidden, tuple) else hidden.detach()


def train(kind: Callable[..., nn.RNNBase], *, carries: bool, **options: Any) -> Run:
    """Train on batches of equal parts; the state of a part comes into the next one, or none does."""
    model = Reader(kind)
    run = run_of(make(model), num_samples=None, data=_Equal(), **options)
    for _ in run.epochs(2):
        hidden = None
        for x, y in run:
            output, given = model(x, hidden)
            hidden = detached(given) if carries else None
            run.step(nn.functional.cross_entropy(output, y))
    return run


class _Equal(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((6,), index / 64), index % 2


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", [{"virtual_workers": 4}, {"virtual_workers": 4, "mode": "fast"}], ids=str)
def test_a_carried_state_is_refused_with_what_works_instead(
    kind: Callable[..., nn.RNNBase], options: dict[str, Any]
) -> None:
    with pytest.raises(TrainingError) as caught:
        train(kind, carries=True, **options)

    assert str(caught.value).startswith(f"the state of rnn ({kind.__name__}) is carried from one batch to the next; ")
    assert "docs/recipes.md" in str(caught.value)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_state_that_one_rnn_gives_to_another_is_fine_and_nothing_is_watched_later(
    kind: Callable[..., nn.RNNBase],
) -> None:
    run = train(kind, carries=False, virtual_workers=4)

    hooks = [module._forward_hooks or module._forward_pre_hooks for module in run.model.modules()]
    assert not any(hooks)
    assert run.num_steps_done == 8


def test_one_virtual_worker_may_carry_what_it_likes() -> None:
    assert train(nn.LSTM, carries=True, virtual_workers=1).num_steps_done == 8
