"""A tiny training in Lightning, Keras or transformers; each says its learning rate where an epoch begins."""

from collections.abc import Callable
from typing import Any

import torch

NUM_EPOCHS = 3


def data() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(80, 12, generator=torch.Generator().manual_seed(7))
    return x, (x[:, 0] * x[:, 1] > 0).long()


def say(epoch: float, rate: float, first: float) -> None:
    print(f"epoch {int(epoch)} in its scale {rate / first:.4f}", flush=True)


def by_lightning(first: float) -> None:
    import lightning as L
    from torch.utils.data import DataLoader, TensorDataset

    from pliant.integrations.lightning import ElasticStrategy

    class Net(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(12, 2)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if batch_idx == 0:
                say(self.current_epoch, self.trainer.optimizers[0].param_groups[0]["lr"], first)
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("eval_loss", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=first)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]

    trainer = L.Trainer(
        strategy=ElasticStrategy(), max_epochs=NUM_EPOCHS, accelerator="cpu", logger=False, enable_progress_bar=False
    )
    trainer.fit(Net(), *(DataLoader(TensorDataset(*data()), batch_size=40) for _ in range(2)))


def by_keras(first: float) -> None:
    from pliant.integrations.keras import fit, keras

    class Said(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            say(epoch, float(self.model.optimizer.learning_rate.value), first)

    keras.utils.set_random_seed(1)
    x, y = (one.numpy() for one in data())
    model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(2, activation="softmax")])
    model.compile(keras.optimizers.SGD(first), "sparse_categorical_crossentropy")
    halving = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch else rate)
    fit(model, x, y, 40, NUM_EPOCHS, validation_data=(x, y), callbacks=[halving, Said()])


def by_transformers(first: float) -> None:
    from pliant.integrations.transformers import elastic
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments, set_seed

    class Said(TrainerCallback):
        def on_epoch_begin(self, arguments: Any, state: Any, control: Any, optimizer: Any = None, **_: Any) -> None:
            say(state.epoch, optimizer.param_groups[0]["lr"], first)

    set_seed(0)
    texts = [{"input_ids": torch.full((6,), n % 20), "labels": torch.full((6,), n % 20)} for n in range(80)]
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    arguments = TrainingArguments(
        "out",
        per_device_train_batch_size=40,
        num_train_epochs=NUM_EPOCHS,
        learning_rate=first,
        eval_strategy="epoch",
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    model = LlamaForCausalLM(LlamaConfig(vocab_size=20, **sizes))
    elastic(Trainer(model, arguments, train_dataset=texts, eval_dataset=texts, callbacks=[Said()])).train()


TRAININGS: dict[str, Callable[[float], None]] = {
    "lightning": by_lightning,
    "keras": by_keras,
    "transformers": by_transformers,
}
