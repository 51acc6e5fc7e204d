"""Makes the `Trainer` of the package `lightning` elastic: `Trainer(strategy=ElasticStrategy())`."""

from pliant.integrations.elastic_lightning.strategy import make_strategy

ElasticStrategy = make_strategy("lightning.pytorch", extra="lightning")
