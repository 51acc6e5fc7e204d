"""Templates: code that models are made from, with the parameters that it asks for."""

from dataclasses import dataclass
from typing import ClassVar

from pliant.core.hyperparameters import ENGINES, Engine
from pliant.core.parameter import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Code with what has to be known to run it."""

    KIND: ClassVar[str] = "template"

    name: str
    owner: str
    framework: str
    main_file: str
    """Relative to the code."""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    engines: tuple[Engine, ...] = ENGINES
    """That the main file is written for; the first is a model's if it names none."""
    code: str
    """Where its files lie: a folder of `CodeFolders`, named after it and the revision that brought them."""
    checksum: str
    """SHA-256 over the names and contents of the files, in hex."""
    num_files: int
    num_bytes: int
    shared_with: tuple[str, ...] = ()
