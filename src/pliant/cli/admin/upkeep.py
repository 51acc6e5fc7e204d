"""Commands that keep a server tidy: `retention`, `cleanup`."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.api.upkeep import RetentionRequest, RuleRequest
from pliant.cli import formatting
from pliant.cli.options import JsonOption
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show, show_list, table
from pliant.cli.session import open_client
from pliant.cli.settings import settings_of
from pliant.core.errors import InvalidInput
from pliant.core.upkeep import Material, Removal, Rule

_DAY_S: Final = 86_400.0
_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_LIMIT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>d|days?|[KMGT]?B?)", re.IGNORECASE)


def retention(
    context: typer.Context,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="THING=LIMIT[,LIMIT]",
            help="Keep logs, metrics, checkpoints or results for so many days (30d) and so many bytes (20GB), or audit "
            "for so many days; repeatable. THING=all keeps them for ever.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show or change how long what ended jobs left is kept.

    \b
    pliant retention
    pliant retention --keep logs=30d --keep checkpoints=7d,50GB
    pliant retention --keep logs=all --keep audit=400d
    """
    with open_client(context) as client:
        view = client.retention()
        if keep:
            rules = {rule.material: _request(rule) for rule in view.rules}
            for text in keep:
                material, rule = _parse_rule(text)
                rules.pop(material, None)
                rules |= {material: rule} if rule else {}
            view = client.set_retention(RetentionRequest(rules=tuple(rules.values())), revision=view.revision)
    by_material = {rule.material: rule for rule in view.rules}
    rows = ([material.value, _words(by_material.get(material))] for material in Material)
    show_list(view, (TableColumn(title="THING"), TableColumn(title="KEPT")), rows, as_json=as_json)


def cleanup(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only tell what would be removed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what ended jobs left, by the rules.

    Old entries of the audit log go, too. `pliant retention` shows and changes the rules.
    The server does so by itself once an hour.
    """
    with open_client(context) as client:
        done = client.clean_up(dry_run=dry_run)
    if as_json:
        print_json(done)
        return
    if done.removals:
        columns = (
            TableColumn(title="JOB"),
            TableColumn(title="THING"),
            TableColumn(title="SIZE", right=True),
            TableColumn(title="WHY", wrap=True),
        )
        show(table(columns, map(_row, done.removals)))
    verb = "would be" if dry_run else "was" if len(done.removals) == 1 else "were"
    say(f"{formatting.count_of(len(done.removals), 'thing')} {verb} removed, {formatting.size(done.num_bytes)}")
    for trouble in done.failed:
        say(trouble, style="red")


def backup(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A new file, such as pliant.tar.gz.", show_default=False)
    ],
    results: Annotated[bool, typer.Option(help="Also what the jobs wrote: models, logs, checkpoints.")] = True,
    data: Annotated[bool, typer.Option(help="Also the data sets.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Copy all that the server holds into one file, while it runs.

    The file holds secrets: keep it as you keep passwords. Environments and the server's log are not in it.
    """
    with open_client(context) as client:
        path = client.backup(file.expanduser().absolute(), results=results, data=data)
    num_bytes = path.stat().st_size
    said = f"{path} holds the server as it is now, {formatting.size(num_bytes)}; it holds secrets"
    print_outcome({"file": str(path), "num_bytes": num_bytes}, said, as_json=as_json)


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `pliant backup` wrote.", show_default=False)],
    home: Annotated[
        Path | None, typer.Option(help="A new or empty state folder.", metavar="DIR", show_default=False)
    ] = None,
) -> None:
    """Make a server's state from a backup.

    `pliant up` starts it then. Jobs that ran when the backup was made go on from
    their newest checkpoint in it. The database is the one that PLIANT_DATABASE
    names, which must be empty; without it SQLite in the state folder.
    """
    folder = (home or settings_of(context).home).expanduser().absolute()
    argv = [
        sys.executable,
        "-P",
        "-m",
        "pliant.entry.restore",
        str(file.expanduser().absolute()),
        "--home",
        str(folder),
    ]
    sys.stdout.flush()
    os.execv(argv[0], argv)


def _parse_rule(text: str) -> tuple[Material, RuleRequest | None]:
    name, _, limits = text.partition("=")
    if name not in set(Material):
        known = ", ".join(Material)
        raise _wrong(f"{name!r} is nothing that is kept; it is one of {known}")
    if limits == "all":
        return Material(name), None
    given: dict[str, float | int] = {}
    for limit in limits.split(","):
        found = _LIMIT.fullmatch(limit.strip())
        if found is None:
            raise _wrong(f"{limit!r} in {text!r} is no limit; give days (30d) or bytes (20GB), or `all`")
        number, unit = float(found["number"]), found["unit"].upper()
        if unit.startswith("D"):
            given["max_age_days"] = number
        else:
            given["max_bytes"] = round(number * _UNITS[unit.removesuffix("B")])
    return Material(name), validate(RuleRequest, {"material": name, **given})


def _request(rule: Rule) -> RuleRequest:
    days = None if rule.max_age_s is None else rule.max_age_s / _DAY_S
    return RuleRequest(material=rule.material, max_age_days=days, max_bytes=rule.max_bytes)


def _words(rule: Rule | None) -> str:
    if rule is None:
        return "for ever"
    since = "" if rule.material is Material.AUDIT else " after the job's end"
    parts = [] if rule.max_age_s is None else [f"for {rule.max_age_s / _DAY_S:g} days{since}"]
    parts += [] if rule.max_bytes is None else [f"the newest {formatting.size(rule.max_bytes)}"]
    return ", at most ".join(parts)


def _row(removal: Removal) -> list[str]:
    return [
        removal.job_id or formatting.NOTHING,
        removal.material.value,
        formatting.size(removal.num_bytes),
        removal.why,
    ]


def _wrong(message: str) -> InvalidInput:
    return InvalidInput.at("--keep", message)
