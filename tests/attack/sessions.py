"""Sessions and one-time links in hostile hands, and what people with little rights ask of the console's routes."""

import json
import secrets
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any, Final

from tests.attack.attack import REFUSED, Attack
from tests.attack.browser import CONSOLE, EVIL, JSON, ask, cookie, link_of_ada, own, redeem
from tests.attack.target import Target

from pliant.api.people import UserPatch, UserRequest

PLAYED: Final = "succeeded"
_PASSWORD: Final = "a password of many words"
_STREAM_S: Final = 20.0
_PREVIEWS: Final = ("jobs", "searches", "queues/default", "resource-groups")


# -- links -------------------------------------------------------------------------------------------------------------


def _used_link(target: Target) -> str:
    code = link_of_ada(target)
    first, second = redeem(target, code), redeem(target, code)
    if first.status != 200:
        return f"not played: {first.status} {first.body!r}"
    return REFUSED if (second.status, "set-cookie" in second.headers) == (401, False) else PLAYED


def _link_of_another_page(target: Target) -> str:
    code = link_of_ada(target)
    answer = redeem(target, code, {"Origin": f"http://{EVIL}"})
    return REFUSED if answer.status == 403 and "set-cookie" not in answer.headers else PLAYED


def _fixed_session(target: Target) -> str:
    """Give Ada's browser a session of Bob's choice; she logs on, and has another one."""
    planted = "plt_s0123456789abcdef_" + "0" * 48
    answer = redeem(target, link_of_ada(target), cookie(target, planted))
    if answer.status != 200:
        return f"not played: {answer.status}"
    given = answer.headers["set-cookie"]
    opens = ask(target, "GET /v1/me", cookie(target, planted)).status != 401
    return PLAYED if opens or planted in given else REFUSED


def _cookie_for_others(target: Target) -> str:
    """Say whether the cookie goes to other hosts, to scripts, or along with what other sites ask for."""
    given = redeem(target, link_of_ada(target)).headers["set-cookie"].lower()
    wrong = [word for word in ("domain=", "samesite=lax", "samesite=none") if word in given]
    lacking = [word for word in ("httponly", "samesite=strict", "path=/") if word not in given]
    return REFUSED if not wrong and not lacking else f"{wrong} {lacking}"


def _cookie_of_another_port(target: Target) -> str:
    status = ask(target, "GET /v1/me", cookie(target, port=target.pool.port + 1)).status
    return REFUSED if status == 401 else f"answered {status}"


def _redeemed_at_once(target: Target) -> str:
    """Let twenty browsers send one code at the same time."""
    code, statuses = link_of_ada(target), []
    begin = threading.Barrier(20)

    def send() -> None:
        begin.wait(30)
        statuses.append(redeem(target, code).status)

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return REFUSED if statuses.count(200) == 1 and len(statuses) == 20 else f"answered {sorted(statuses)}"


# -- sessions whose right has ended ------------------------------------------------------------------------------------


def _join(target: Target, role: str) -> str:
    """Let somebody new join; return their name."""
    name = f"c-{secrets.token_hex(4)}"
    with target.pool.client() as admin:
        admin.people.add_user(UserRequest.model_validate({"name": name, "role": role, "password": _PASSWORD}))
    return name


def _log_on(target: Target, name: str) -> str | None:
    """Log somebody on as the console does; return the session, None if they are refused."""
    body = json.dumps({"name": name, "password": _PASSWORD, "cookie": True}).encode()
    host, port = target.address
    answer = ask(target, "POST /v1/logon", {**CONSOLE, **JSON, "Origin": f"http://{host}:{port}"}, body)
    given = answer.headers.get("set-cookie", "")
    return given.partition("=")[2].partition(";")[0] if answer.status == 200 else None


def _change(target: Target, name: str, **changes: Any) -> None:
    with target.pool.client() as admin:
        admin.people.change_user(name, UserPatch.model_validate(changes))


def _opens(target: Target, session: str) -> bool:
    return ask(target, "GET /v1/me", cookie(target, session)).status != 401


def _after(*changes: dict[str, Any]) -> Callable[[Target], str]:
    """Return what logs somebody on, changes their account, and says whether their session still opens anything."""

    def play(target: Target) -> str:
        session = _log_on(target, name := _join(target, "user"))
        if session is None or not _opens(target, session):
            return "not played: the session opens nothing"
        for change in changes:
            _change(target, name, **change)
        return PLAYED if _opens(target, session) else REFUSED

    return play


def _after_demotion(target: Target) -> str:
    """Ask for what a user may do, as a viewer of one moment."""
    session = _log_on(target, name := _join(target, "user")) or ""
    body = b'{"script": "train.py"}'
    asking = {**own(target), **cookie(target, session), **JSON}
    before = ask(target, "POST /v1/jobs/preview", asking, body).status
    _change(target, name, role="viewer")
    statuses = [ask(target, f"POST /v1/{path}/preview", asking, body).status for path in _PREVIEWS]
    return REFUSED if (before, set(statuses)) == (200, {403}) else f"answered {before}, then {statuses}"


def _streamed_on(target: Target) -> str:
    """Follow events with a session that ends, and say whether they go on."""
    session = _log_on(target, name := _join(target, "user")) or ""
    connection = HTTPConnection(*target.address, timeout=_STREAM_S)
    try:
        connection.request("GET", "/v1/events/stream", headers=cookie(target, session))
        stream = connection.getresponse()
        if stream.status != 200:
            return f"not played: {stream.status}"
        _change(target, name, password=secrets.token_hex(16))
        deadline = time.monotonic() + _STREAM_S
        while stream.read1():
            if time.monotonic() > deadline:
                return PLAYED
    except TimeoutError:
        return PLAYED
    finally:
        connection.close()
    return REFUSED


def _logged_on_meanwhile(target: Target) -> str:
    """Log on over and over with a password while it is changed, and say whether any of these sessions outlives it."""
    name, sessions = _join(target, "user"), []

    def log_on() -> None:
        while (session := _log_on(target, name)) is not None:
            sessions.append(session)

    threads = [threading.Thread(target=log_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    target.until(lambda: len(sessions) > 5, "they log on")
    _change(target, name, password=secrets.token_hex(16))
    for thread in threads:
        thread.join()
    return PLAYED if any(_opens(target, session) for session in sessions) else REFUSED


# -- bodies ------------------------------------------------------------------------------------------------------------


def _views(target: Target) -> str:
    """Save views that are too many, nested without end, or named to deceive."""
    bodies = (
        json.dumps({"views": [{"name": str(number), "query": ""} for number in range(20_000)]}).encode(),
        b'{"views":' + b"[" * 400_000 + b"]" * 400_000 + b"}",
        b'{"views":' + b"9" * 900_000 + b"}",
        json.dumps({"views": [{"name": "a\u202eb", "query": ""}]}).encode(),
        b'{"views": [{"name": "\\ud800", "query": ""}]}',
    )
    statuses = [ask(target, "PUT /v1/me/views", {**own(target), **JSON}, body).status for body in bodies]
    plain = {**own(target), "Content-Type": "text/plain"}
    statuses.append(ask(target, "PUT /v1/me/views", plain, b'{"views": []}').status)
    kept = target.ada.people.views().views
    return REFUSED if set(statuses) == {422} and not kept else f"answered {statuses}, and keeps {kept!r:.80}"


def _endless_grid(target: Target) -> str:
    """Ask for a grid of more points than Python writes as a number."""
    fine = {"kind": "float", "low": 0, "high": 1e300, "step": 1e-300}
    asked = {
        "name": "fine",
        "script": "train.py",
        "objectives": [{"metric": "loss", "direction": "minimize"}],
        "parameters": {f"p{number}": fine for number in range(100)},
        "sampler": {"name": "grid"},
        "max_trials": 10,
    }
    answer = ask(target, "POST /v1/searches/preview", {**own(target), **JSON}, json.dumps(asked).encode())
    found = [one["field"] for one in json.loads(answer.body).get("problems", ())]
    return REFUSED if answer.status == 200 and "sampler.name" in found else f"answered {answer.status}"


def _attack(name: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="console", name=name, expected=REFUSED, play=play)


_OTHER: Final = {"password": "another password of words"}
ATTACKS: Final = (
    _attack("a link to log on that was used", _used_link),
    _attack("a link to log on, by another page", _link_of_another_page),
    _attack("a session that was put into the browser before log-on", _fixed_session),
    _attack("the cookie at other hosts, to scripts, from other sites", _cookie_for_others),
    _attack("the cookie of a server at another port", _cookie_of_another_port),
    _attack("a link to log on that twenty browsers redeem at once", _redeemed_at_once),
    _attack("a session after another password was set", _after(_OTHER)),
    _attack("a session after its owner was disabled", _after({"active": False})),
    _attack("a session after its owner was disabled and enabled", _after({"active": False}, {"active": True})),
    _attack("previews of changes, by who was made a viewer", _after_demotion),
    _attack("a stream of events after its session has ended", _streamed_on),
    _attack("logging on with a password while it is changed", _logged_on_meanwhile),
    _attack("saved views that are too many, too deep, or named to deceive", _views),
    _attack("a search over a grid without end", _endless_grid),
)
