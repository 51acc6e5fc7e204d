"""Train a Keras model on scikit-learn's handwritten digits, with `fit` of Pliant where `model.fit` stood."""

import argparse

from pliant.integrations.keras import fit, keras
from sklearn.datasets import load_digits

layers = keras.layers


def make_model():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.003), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of one optimizer step")
    args = parser.parse_args()
    keras.utils.set_random_seed(1)

    digits = load_digits()
    x, y = digits.images[..., None] / 16, digits.target
    fit(
        make_model(),
        x[:1440],
        y[:1440],
        batch_size=args.batch_size,
        epochs=args.epochs,
        validation_data=(x[1440:], y[1440:]),
        callbacks=[keras.callbacks.ReduceLROnPlateau(patience=2), keras.callbacks.EarlyStopping(patience=5)],
    )


if __name__ == "__main__":
    main()
