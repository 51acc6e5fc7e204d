"""Data as Keras scripts have it becomes single samples, in an order that does not depend on the tasks."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.integrations.keras.models import compiled

from pliant.core.errors import InvalidInput
from pliant.integrations.keras import fit, keras
from pliant.integrations.keras.samples import BatchedSamples, collate, order_of, samples_of
from pliant.train.seeds import seed_loading

X, Y = np.arange(40.0).reshape(10, 4), np.arange(10)


class Batches(keras.utils.PyDataset):
    """Ten samples in batches of four, four and two."""

    def __init__(self, sizes: tuple[int, ...] = (4, 4, 2)) -> None:
        super().__init__()
        self.sizes = sizes
        self.computed: list[int] = []

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> Any:
        self.computed.append(index)
        first = sum(self.sizes[:index])
        return X[first : first + self.sizes[index]], Y[first : first + self.sizes[index]]


class Changing(Batches):
    def on_epoch_end(self) -> None:
        self.sizes = self.sizes[::-1]


class Single:
    """One (x, y) by its number, as IBM's data sets for TensorFlow have it."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        return {"a": X[index], "b": X[index, 0]}, int(Y[index])


def test_arrays_give_samples_and_batches_in_the_precision_of_keras() -> None:
    samples = samples_of((X, Y))
    x, y = collate([samples[3], samples[9]])

    assert len(samples) == 10
    assert x.dtype is torch.float32
    assert x.tolist() == [X[3].tolist(), X[9].tolist()]
    assert y.tolist() == [3, 9]


def test_nested_arrays_lists_and_data_sets_of_samples_are_taken() -> None:
    x, y = collate([samples_of(({"a": X, "b": list(range(10))}, [Y, Y * 2]))[4]])
    assert (x["a"].shape, x["b"].tolist(), [one.tolist() for one in y]) == ((1, 4), [4], [[4], [8]])
    x, y = collate([samples_of(Single())[2]])
    assert (x["a"].tolist(), x["b"].tolist(), y.tolist()) == ([X[2].tolist()], [8.0], [2])
    data_set = torch.utils.data.TensorDataset(torch.zeros(3, 2), torch.zeros(3))
    assert samples_of(data_set) is data_set
    assert samples_of(None) is None


def test_batches_that_a_data_set_computes_stay_together_and_are_computed_once() -> None:
    batches = Batches()
    samples = samples_of(batches)
    assert [samples[index][1].item() for index in range(10)] == list(range(10))

    order = order_of(samples)
    assert order is not None
    batches.computed.clear()
    found = [samples[index][1].item() for index in order(3)]

    assert sorted(found) == list(range(10))
    assert len(batches.computed) <= 3
    orders = {tuple(order(epoch)) for epoch in range(20)}
    assert len(orders) == 6, "three batches have six orders"
    assert all({(0, 1, 2, 3)} <= {tuple(one[i : i + 4]) for i in range(7)} for one in orders)
    assert order_of(samples_of((X, Y))) is None


def test_an_image_iterator_gives_any_image_and_draws_from_what_pliant_seeds() -> None:
    images = np.random.default_rng(0).random((6, 8, 8, 1))
    image = importlib.import_module("keras._tf_keras.keras.preprocessing.image")
    generator = image.ImageDataGenerator(preprocessing_function=lambda array: array + np.random.random())
    samples = samples_of(generator.flow(images, np.arange(6), batch_size=4, seed=1))

    seed_loading(7)
    first = samples[5]
    seed_loading(7)
    again = samples[5]
    other = samples[5]

    assert len(samples) == 6
    assert first[0].shape == (8, 8, 1)
    assert first[1] == 5
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])


def test_a_data_set_of_batches_is_trained_on_and_validated_with() -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mae")

    history = fit(model, Batches(), batch_size=5, epochs=2, validation_data=Batches(), virtual_workers=2)

    assert sorted(history.history) == ["loss", "val_loss"]


Broken = type("Broken", (), {"__module__": "tensorflow.python.data"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: Changing(), "Changing.on_epoch_end changes it, which a task that joins later would not know"),
        (lambda: Batches(()), "Batches has no batches, or does not say how many"),
        (lambda: list(map(BatchedSamples(Batches((4, 3, 3))).__getitem__, range(9))), "its batch 1 has 3 samples"),
        (lambda: Broken(), "it is a Broken of TensorFlow .tf.data.; give .x, y. of arrays"),
        (lambda: iter([]), "it is a list_iterator, which has no samples by number"),
        (lambda: (X, Y, Y), "it has 3 parts"),
        (lambda: (X, Y[1:]), r"its arrays have \[9, 10\] samples; give as many in each"),
    ],
)
def test_other_data_is_refused_by_its_name(given: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=f"data set: {message}"):
        samples_of(given())


def test_samples_of_three_parts_are_refused() -> None:
    class Weighted(Single):
        def __getitem__(self, index: int) -> Any:
            return X[index], Y[index], 1.0

    with pytest.raises(InvalidInput, match=r"not \(x, y\); weights of samples are not supported"):
        fit(compiled(), Weighted(), batch_size=5)
