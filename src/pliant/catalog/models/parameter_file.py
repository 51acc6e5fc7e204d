"""The files that tell a training's code what the person entered: `ps.conf` as IBM has it, and `parameters.json`."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from pliant.catalog.models.model import Model
from pliant.core.hyperparameters import conf_lines
from pliant.core.parameter import filled_in

PS_CONF: Final = "ps.conf"
PARAMETERS: Final = "parameters.json"
"""Everything, with the template's own parameters, as JSON."""


def parameter_files(ran: Model) -> Mapping[str, bytes]:
    """Return both files by name. The same model gives the same bytes."""
    entered = {
        "template": ran.template.name,
        "template_revision": ran.template_revision,
        "framework": ran.template.framework,
        "engine": ran.engine,
        "max_workers": ran.max_workers,
        "dataset": ran.dataset,
        "hyperparameters": asdict(ran.hyperparameters),
        "parameters": filled_in(ran.template.parameters, ran.parameters),
    }
    lines = ("# What was entered for this training; Pliant wrote it.", *conf_lines(ran.hyperparameters))
    return {
        PS_CONF: "".join(f"{line}\n" for line in lines).encode(),
        PARAMETERS: (json.dumps(entered, indent=2, ensure_ascii=False, sort_keys=True) + "\n").encode(),
    }
