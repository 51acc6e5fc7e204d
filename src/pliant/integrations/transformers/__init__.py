"""Hugging Face's `Trainer`, elastic: `trainer = elastic(Trainer(...))`, and `trainer.train()` as ever."""

from pliant.integrations.transformers.convert import elastic

__all__ = ["elastic"]
