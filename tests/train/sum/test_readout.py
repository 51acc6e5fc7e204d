"""Numbers come to the host as they are; `tests/train/test_gpu.py` shows that the host does not wait for a GPU."""

import torch

from pliant.train.sum.readout import Element, Readout, Weighed
from pliant.train.sum.tail import TailLayout

ELEMENTS: list[Element] = [0.0, 1.5, torch.tensor(2.0), Weighed(torch.tensor(0.1), 10.0)]


def test_elements_are_read_with_their_weights_whether_or_not_they_were_started() -> None:
    expected = [0.0, 1.5, 2.0, torch.tensor(0.1).item() * 10.0]
    readout = Readout()

    assert readout.finish(ELEMENTS) == expected
    readout.start(ELEMENTS)
    assert readout.finish([*ELEMENTS, 3.0]) == [*expected, 3.0]


def test_a_tail_holds_elements_of_every_kind_and_zeros() -> None:
    layout = TailLayout(num_control=4, num_flags=1, num_running=2)

    tail = layout.make(ELEMENTS, torch.device("cpu"))

    assert tail.tolist() == torch.tensor([0.0, 1.5, 2.0, 1.0, 0.0, 0.0, 0.0]).tolist()
    assert layout.make([0.0, 1.5, 2.0, 1.0], torch.device("cpu")).tolist() == tail.tolist()
