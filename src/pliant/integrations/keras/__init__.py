"""Keras 3 on PyTorch, trained elastically: `fit` for a compiled model, and the parts that `FabricModel` uses.

    from pliant.integrations.keras import fit

    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    fit(model, x_train, y_train, batch_size=64, epochs=5, validation_data=(x_test, y_test))

Theory of operation. With this backend a Keras model is a torch module, but one whose every variable is a parameter,
statistics and seeds included. `KerasModule` shows the engine another one: trainable variables as parameters, the
others as buffers, the same tensors. `KerasOptimizer` shows it Keras' optimizer as one of torch's. Loss and metrics are
those that the model was compiled with.

Laws. A step is the same bits whoever computes which part of it: random layers draw from torch's generator, which the
engine seeds for every part; metrics begin anew with every part, so their means over samples are what counts. What
decides about the training (callbacks, the learning rate, means over an epoch) is part of the shared state.
"""

from pliant.integrations.keras.backend import keras

__all__ = ["fit", "keras"]

from pliant.integrations.keras.fit import fit
