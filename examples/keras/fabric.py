"""A script as it was written for `FabricModel` and TensorFlow's Keras; it needs no TensorFlow."""

import argparse

import tensorflow as tf
from fabric_model import FabricModel
from sklearn.datasets import load_digits
from tensorflow.keras import layers

MAX_WORKERS = 8


def get_datasets():
    digits = load_digits()
    x, y = digits.images[..., None] / 16, tf.keras.utils.to_categorical(digits.target)
    return (x[:1440], y[:1440]), (x[1440:], y[1440:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of one optimizer step")
    args = parser.parse_args()
    tf.random.set_seed(1)

    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            layers.Conv2D(32, 3, padding="same", activation=tf.nn.relu),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(64, activation=tf.nn.relu),
            layers.Dense(10, activation="softmax"),
        ]
    )
    schedule = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch == 8 else rate)
    edt = FabricModel(
        model,
        get_datasets,
        loss_function="categorical_crossentropy",
        optimizer=tf.keras.optimizers.Adam(0.003),
        user_callback=[schedule],
    )
    edt.train(args.epochs, args.batch_size // MAX_WORKERS, MAX_WORKERS)


if __name__ == "__main__":
    main()
