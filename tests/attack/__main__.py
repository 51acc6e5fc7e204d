"""`python -m tests.attack [--only GROUP]`: play all attacks against a real server, and print what came of each.

Ends with code 1 if anything was not as expected. Root plays twice: as root, and as an ordinary user.
"""

import argparse
import os
import pwd
import subprocess
import sys
import tempfile
from typing import Final

from tests.attack import console, generations, isolation, limits, planted, sessions, shells, web
from tests.attack.attack import Attack, Outcome
from tests.attack.belongings import PLACES, places
from tests.attack.endpoints import deployments, kernels, requests, rights, terminals
from tests.attack.target import Target

ATTACKS: Final[tuple[Attack, ...]] = (
    *isolation.ATTACKS,
    *planted.ATTACKS,
    *limits.ATTACKS,
    *web.ATTACKS,
    *console.ATTACKS,
    *sessions.ATTACKS,
    *generations.ATTACKS,
    *shells.ATTACKS,
    *rights.ATTACKS,
    *requests.ATTACKS,
    *deployments.ATTACKS,
    *kernels.ATTACKS,
    *terminals.ATTACKS,
)


def main() -> int:
    groups = sorted({attack.group for attack in ATTACKS})
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--only", action="append", choices=groups, help="play this group; repeatable")
    parser.add_argument("--user", default=None, help="whom root plays as the second time; default: nobody")
    parser.add_argument("--once", action="store_true", help="play as the present user alone")
    given = parser.parse_args()
    chosen = [attack for attack in ATTACKS if given.only is None or attack.group in given.only]
    if os.geteuid() == 0:
        with places(os.geteuid()) as folders:
            os.environ[PLACES] = folders
            failed = play(chosen)
    else:
        failed = play(chosen)
    if os.geteuid() == 0 and not given.once:
        failed |= play_as(given.user or "nobody", sys.argv[1:])
    return int(failed)


def play(attacks: list[Attack]) -> bool:
    """Play them one after the other; return whether any was not as expected."""
    isolation.plant_variable()
    user = pwd.getpwuid(os.geteuid()).pw_name
    print(f"{len(attacks)} attacks on a server of the user {user}", flush=True)
    print(f"{'':10}  {'group':13}  {'attack':80}  {'expected':24}  seen")
    outcomes = []
    with Target() as target:
        for attack in attacks:
            outcomes.append(outcome := Outcome(attack=attack, seen=attempt(attack, target), is_root=target.is_root))
            print(row(outcome), flush=True)
    num_expected = sum(outcome.is_expected for outcome in outcomes)
    num_gaps = sum(outcome.is_known_gap for outcome in outcomes)
    num_wrong = len(outcomes) - num_expected - num_gaps
    gaps = f"{num_gaps} known gaps of an ordinary user's server, " if num_gaps else ""
    print(f"{num_expected} as expected, {gaps}{num_wrong} not", flush=True)
    return num_wrong > 0


def attempt(attack: Attack, target: Target) -> str:
    """Return what came of an attack; what goes wrong in playing it is no success of the defence."""
    try:
        return attack.play(target)
    except Exception as error:  # noqa: BLE001 (the others are played all the same)
        return f"not played: {type(error).__name__}: {error}"[:200]


def row(outcome: Outcome) -> str:
    attack = outcome.attack
    mark = "" if outcome.is_expected else "known gap" if outcome.is_known_gap else "UNEXPECTED"
    return f"{mark:10}  {attack.group:13}  {attack.name:80}  {attack.expected:24}  {outcome.seen}"


def play_as(user: str, arguments: list[str]) -> bool:
    """Play all again in a process of an ordinary user; return whether any was not as expected."""
    command = [sys.executable, "-m", "tests.attack.as_user", user, "tests.attack", *arguments]
    uid = pwd.getpwnam(user).pw_uid
    with tempfile.TemporaryDirectory(prefix="pliant-attack-home-") as home, places(uid) as folders:
        os.chown(home, uid, -1)
        who = {"HOME": home, "USER": user, "LOGNAME": user, PLACES: folders}
        env = {**os.environ, **who, "PYTHONDONTWRITEBYTECODE": "1"}
        return bool(subprocess.run(command, env=env, check=False).returncode)


if __name__ == "__main__":
    sys.exit(main())
