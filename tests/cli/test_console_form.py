"""The form of the console writes commands: the options that it knows are those of `submit`, for the same fields."""

import re
from pathlib import Path
from typing import Final

from pliant.cli.jobs.asked import OPTIONS

_FIELDS: Final = Path(__file__).parents[2] / "web" / "src" / "pages" / "submit" / "fields.ts"
_OPTION: Final = re.compile(r"""^  (\w+): of\("\w+", "([^"]+)"\)?""", re.MULTILINE)
_NOT_TYPED: Final = {"args", "requirements", "python", "data_dir"}
"""Arguments come after `--`; requirements are an environment; paths of the server's machine are not asked for."""


def test_every_option_of_the_form_is_one_of_the_command_line() -> None:
    options = {name: option for name, option in _OPTION.findall(_FIELDS.read_text()) if name != "args"}
    assert options == {
        name: option.name.partition("/")[0] for name, option in OPTIONS.items() if name not in _NOT_TYPED
    }
