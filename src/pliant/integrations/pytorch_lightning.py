"""Makes the `Trainer` of the package `pytorch_lightning` elastic; its classes are not those of `lightning`."""

from pliant.integrations.elastic_lightning.strategy import make_strategy

ElasticStrategy = make_strategy("pytorch_lightning", extra="lightning")
