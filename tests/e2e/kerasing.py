"""A training of a Keras model with dropout that sleeps at the end of every epoch as long as the file PACE says."""

import argparse
import time
from pathlib import Path
from typing import Any

import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow.keras import layers

from fabric_model import FabricModel


def get_datasets() -> Any:
    digits = load_digits()
    x, y = digits.data / 16, digits.target
    return (x[:640], y[:640]), (x[640:800], y[640:800])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--pace", type=Path)
    args = parser.parse_args()
    tf.random.set_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            layers.Dense(24, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dense(10, activation="softmax"),
        ]
    )

    def wait(epoch: int, logs: Any) -> None:
        if args.pace is not None:
            time.sleep(float(args.pace.read_text()))

    callbacks = [
        tf.keras.callbacks.ReduceLROnPlateau(patience=1, min_delta=0.05),
        tf.keras.callbacks.LambdaCallback(on_epoch_end=wait),
    ]
    edt = FabricModel(model, get_datasets, "sparse_categorical_crossentropy", "adam", user_callback=callbacks)
    edt.train(args.epochs, 16, 4)


if __name__ == "__main__":
    main()
