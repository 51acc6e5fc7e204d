"""A Keras training of one virtual worker is the same bits as Keras itself trains; its dice are those of its seed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.integrations.keras.models import NUM_EPOCHS, compiled, data, digest, train

from pliant.integrations.keras import keras

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.02, 5, 0.9)),
        lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        lambda: keras.optimizers.AdamW(0.01, global_clipnorm=0.1),
        lambda: keras.optimizers.RMSprop(0.01, gradient_accumulation_steps=2),
        lambda: keras.optimizers.Lion(0.01),
    ],
)
def test_one_virtual_worker_trains_the_bits_of_a_plain_fit(optimizer: Callable[[], Any]) -> None:
    ours, plain = compiled(optimizer(), drops=False), compiled(optimizer(), drops=False)
    train_set, test_set = data()

    history = train(ours, virtual_workers=1, shuffle=False)
    theirs = plain.fit(*train_set, batch_size=16, epochs=NUM_EPOCHS, shuffle=False, verbose=0, validation_data=test_set)

    assert digest(ours) == digest(plain)
    for name, values in theirs.history.items():
        assert np.allclose(history.history[name], values, atol=1e-5), name


def test_random_layers_draw_from_the_seed_of_the_training() -> None:
    first, same, other = compiled(), compiled(), compiled()
    train(first, seed=1)
    keras.random.normal((3,))  # what was drawn before does not matter
    train(same, seed=1)
    train(other, seed=1, shuffle=False)

    assert digest(first) == digest(same) != digest(other)
