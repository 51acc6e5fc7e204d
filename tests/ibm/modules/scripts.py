"""Scripts in the manner of those written for IBM's product, kept as text: they run as files of their own.

They read FABRIC_HOME, bring callbacks of their own, and use the names of modules as they are on a task's path.
"""

CALLBACKS = """
from callbacks import Callback, LoggerCallback
from emetrics import EMetrics
from elog import ELog


class MyLogger(LoggerCallback):
    def __init__(self):
        self.steps = 0

    def log_train_metrics(self, loss, acc, completed_batch, worker=0):
        acc = acc / 100.0
        self.steps += 1
        with EMetrics.open() as em:
            em.record(EMetrics.TEST_GROUP, completed_batch, {"loss": loss, "accuracy": acc})
        with ELog.open() as log:
            log.recordTrain("Train", completed_batch, self.steps, loss, acc, worker)

    def log_test_metrics(self, loss, acc, completed_batch, worker=0):
        with ELog.open() as log:
            log.recordTest("Test", loss, acc / 100.0, worker)


class MyCallback(Callback):
    def __init__(self, path):
        super(MyCallback, self).__init__()
        self.path = path

    def on_epoch_end(self, epoch, save_model=False):
        with ELog.open() as log:
            log.recordText("epoch %d of %d in %s" % (epoch, self.params["epochs"], self.path))


class Schedule(Callback):
    def __init__(self, step_size, gamma):
        super(Schedule, self).__init__()
        self.step_size = step_size
        self.gamma = gamma

    def on_epoch_begin(self, epoch):
        if epoch != 0 and epoch % self.step_size == 0:
            for group in self.params["optimizer"].param_groups:
                group["lr"] *= self.gamma
        print("epoch={}, learning_rate={}".format(epoch, self.params["optimizer"].param_groups[0]["lr"]))
"""

PARTS = """
from __future__ import print_function
import os, sys
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.fc1 = nn.Linear(64, 96)
        self.fc2 = nn.Linear(96, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def getDatasets():
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    return (torch.utils.data.TensorDataset(x[:1500], y[:1500]), torch.utils.data.TensorDataset(x[1500:], y[1500:]))
"""

BATCH = (
    PARTS
    + """
path = os.path.join(os.getenv("FABRIC_HOME"), "libs", "")
print("> fabric loaded from %s" % path)
sys.path.append(path)
sys.path.insert(0, os.path.join(os.getenv("FABRIC_HOME"), "libs", "fabric.zip"))

from fabric_model import FabricModel
from mycallbacks import MyLogger, MyCallback

data_dir = os.environ.get("DATA_DIR", "/tmp")
result_dir = os.environ.get("RESULT_DIR", "/tmp")
output_model_path = os.path.join(result_dir, "model")
os.makedirs(output_model_path, exist_ok=True)

MAX_NUM_WORKERS = 16


def main():
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=1.0, rho=0.95)
    edt_m = FabricModel(model, getDatasets, F.cross_entropy, optimizer, driver_logger=MyLogger(),
                        user_callback=[MyCallback(output_model_path)])
    edt_m.train(3, 2, MAX_NUM_WORKERS)


if __name__ == "__main__":
    main()
"""
)

OWN_STEPS = (
    PARTS
    + """
from fabric_model import FabricModel
from mycallbacks import MyLogger, Schedule


def custom_train(model, data, eva, train_loader, fn_args):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    inputs, labels = data
    inputs, labels = inputs.to(device), labels.to(device)
    opt = model.get_optimizer()
    opt.zero_grad()
    outputs = model(inputs)
    cri = model.get_loss_function()
    loss = cri(outputs, labels)
    loss.backward()
    acc = eva(outputs, labels)
    return acc, loss


def custom_test(model, test_iter, fn_args):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cri = model.get_loss_function()
    total, counter = 0.0, 0
    for (inputs, labels) in test_iter:
        inputs, labels = inputs.to(device), labels.to(device)
        total += cri(model(inputs), labels).item()
        counter += 1
    return total / counter


model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.4, momentum=0.9, weight_decay=1e-4)
edt_m = FabricModel(model, getDatasets, F.cross_entropy, optimizer, enable_onnx=True, fn_step_train=custom_train,
                    fn_test=custom_test, user_callback=[Schedule(1, 0.1)], driver_logger=MyLogger())
edt_m.train(3, 8, 8, num_dataloader_threads=4, validation_freq=10, checkpoint_freq=0)
"""
)

FROM_FORM = (
    PARTS
    + """
import argparse
from pyedt.fabric_model import FabricModel

engines_number = 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_dir", type=str, default="")
    parser.add_argument("--weights", type=str, default="")
    args, unknown = parser.parse_known_args()
    sys.path.insert(0, args.train_dir + "/../")
    import pth_parameter_mgr
    print("train data in", pth_parameter_mgr.getTrainData(False))
    print("test data in", pth_parameter_mgr.getTestData(False))
    model = Net()
    optimizer = pth_parameter_mgr.getOptimizer(model)
    edt_m = FabricModel(model, getDatasets, F.cross_entropy, optimizer)
    edt_m.train(pth_parameter_mgr.getEpoch(), pth_parameter_mgr.getTrainBatchSize(), engines_number)


main()
"""
)

SEARCH = (
    PARTS
    + """
import json
from callbacks import LoggerCallback
from fabric_model import FabricModel


class SearchLogger(LoggerCallback):
    def __init__(self):
        self.out = []

    def log_train_metrics(self, metrics, iteration, epoch, workers):
        pass

    def log_test_metrics(self, metrics, iteration, epoch):
        self.out.append({"steps": epoch, "accuracy": metrics["accuracy"], "loss": metrics["loss"]})

    def on_train_end(self):
        with open("{}/val_dict_list.json".format(os.environ["RESULT_DIR"]), "w") as f:
            json.dump(self.out, f)


model = Net()
FabricModel(model, getDatasets, F.cross_entropy, optim.Adam(model.parameters(), lr=0.01),
            driver_logger=SearchLogger()).train(2, 32, effective_batch_size=64)
"""
)

WITHOUT_COPIES = (
    PARTS
    + """
from fabric_model import FabricModel
from edtcallback import EDTLoggerCallback, EDTTrainCallback

model = Net()
edt_m = FabricModel(model, getDatasets, F.cross_entropy, optim.Adam(model.parameters(), lr=0.01),
                    driver_logger=EDTLoggerCallback(), user_callback=[EDTTrainCallback("/tmp")])
edt_m.train(1, 16, 4)
"""
)
KERAS = """
import os, sys
sys.path.append(os.path.join(os.getenv("FABRIC_HOME"), "libs", ""))
import tensorflow as tf
from tensorflow.keras import layers
from tensorflow.keras.preprocessing.image import ImageDataGenerator
from sklearn.datasets import load_digits
from pyedt.fabric_model import FabricModel

print("TensorFlow", tf.__version__.split(".")[0])
tf.random.set_seed(1)

def getDatasets():
    digits = load_digits()
    x, y = digits.images[..., None] / 16, tf.keras.utils.to_categorical(digits.target)
    train = ImageDataGenerator(rotation_range=0).flow(x[:1500], y[:1500], batch_size=32)
    return train, ImageDataGenerator().flow(x[1500:], y[1500:], batch_size=32)

model = tf.keras.Sequential([
    layers.Conv2D(8, 3, activation=tf.nn.relu, input_shape=(8, 8, 1)),
    layers.Flatten(),
    layers.Dropout(0.1),
    layers.Dense(10, activation="softmax"),
])
adam = tf.keras.optimizers.Adam(0.01)
edt = FabricModel(model, getDatasets, loss_function="categorical_crossentropy", optimizer=adam)
edt.train(epoch_number=3, batch_size=16, engines_number=4, worker_memory="16G", driver_memory="1G")
"""
