"""What another page, or a stranger in front of the server, makes of the console and of a session in its cookie."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Final
from urllib.parse import quote

from tests.attack.attack import REFUSED, Attack
from tests.attack.target import Target

PLAYED: Final = "succeeded"
PAGE: Final = {"Accept": "text/html,application/xhtml+xml"}
CONSOLE: Final = {"X-Pliant-Console": "1"}
EVIL: Final = "evil.example"
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
PLAIN: Final = {"Content-Type": "text/plain"}
"""What a form, or `fetch`, sends to another site without asking first."""
_CROSS: Final = {"Origin": f"http://{EVIL}"}
PASSWD: Final = (
    "../../../../../../etc/passwd",
    "..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "..%5c..%5c..%5cetc%5cpasswd",
    "%252e%252e%252f%252e%252e%252fetc%252fpasswd",
    "/etc/passwd",
    "x%00/../../../etc/passwd",
    "..;/..;/..;/etc/passwd",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    """By their names in small letters."""
    body: bytes


def ask(target: Target, request: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
    """Send `METHOD /path`, as it is written, with these headers alone; `Host` is the server's own if none is given."""
    method, _, path = request.partition(" ")
    host, port = target.address
    connection = HTTPConnection(host, port, timeout=10.0)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sent = {"Host": f"{host}:{port}", "Content-Length": str(len(body)), **(headers or {})}
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return Answer(
            status=answer.status,
            headers={name.lower(): value for name, value in answer.getheaders()},
            body=answer.read(),
        )
    finally:
        connection.close()


def cookie(target: Target, token: str = "", port: int | None = None) -> dict[str, str]:
    """Return Ada's session, or another token, as her browser sends it."""
    return {"Cookie": f"pliant_{target.pool.port if port is None else port}={token or target.tokens['ada']}"}


def _own(target: Target) -> dict[str, str]:
    """Return what Ada's browser sends with a change that her console asks for."""
    host, port = target.address
    return {**cookie(target), **CONSOLE, "Origin": f"http://{host}:{port}"}


# -- other pages -------------------------------------------------------------------------------------------------------


def _changed(target: Target, headers: Mapping[str, str], body: bytes) -> str:
    """Let Ada's browser ask for a token, as another page makes it; her cookie comes along, as it should not."""
    before = len(target.ada.people.tokens())
    answer = ask(target, "POST /v1/tokens", {**cookie(target), **headers}, body)
    made = len(target.ada.people.tokens()) > before
    return PLAYED if made else REFUSED if answer.status == 403 else f"answered {answer.status}"


def _other_page(headers: Mapping[str, str], body: bytes = b'{"label": "planted"}') -> Callable[[Target], str]:
    return lambda target: _changed(target, headers, body)


def _own_page(target: Target) -> str:
    """Ask as the console does: what the others are refused works, so it is not refused for another reason."""
    return _changed(target, {**_own(target), "Content-Type": "application/json"}, b'{"label": "own"}')


def _logged_on_by_another_page(target: Target) -> str:
    """Log Ada's browser on as Bob, whose password the other page knows."""
    body = json.dumps({"name": "bob", "password": "x" * 12, "cookie": True}).encode()
    for kind in ("text/plain", "application/json"):
        answer = ask(target, "POST /v1/logon", {"Content-Type": kind, **_CROSS}, body)
        if answer.status not in (403, 422) or "set-cookie" in answer.headers:
            return f"answered {answer.status}"
    return REFUSED


def _preflight(target: Target) -> str:
    """Ask as a browser asks first whether another page may send the header of the console."""
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-pliant-console"}
    answer = ask(target, "OPTIONS /v1/tokens", {"Origin": f"http://{EVIL}", **asked})
    allowed = [name for name in answer.headers if name.startswith("access-control-allow")]
    return f"allowed by {allowed}" if allowed else REFUSED


def _read_by_another_page(target: Target) -> str:
    answer = ask(target, "GET /v1/me", {**cookie(target), "Origin": f"http://{EVIL}"})
    allowed = [name for name in answer.headers if name.startswith("access-control-allow")]
    kept = answer.headers.get("cross-origin-resource-policy") == "same-origin"
    return REFUSED if not allowed and kept else f"{allowed}, {answer.headers}"


def _rebound(target: Target) -> str:
    """Ask as a page whose name now means the server's address: a browser has no cookie for that name."""
    host = {"Host": f"{EVIL}:{target.pool.port}"}
    read = ask(target, "GET /v1/jobs", {**host, **CONSOLE}).status
    changed = ask(target, "POST /v1/tokens", {**host, **CONSOLE, "Origin": f"http://{host['Host']}"}, b"{}").status
    return REFUSED if (read, changed) == (401, 401) else f"answered {read}, {changed}"


def _framed(target: Target) -> str:
    headers = ask(target, "GET /", PAGE).headers
    policy = headers["content-security-policy"]
    return REFUSED if "frame-ancestors 'none'" in policy and headers["x-frame-options"] == "deny" else policy


# -- sessions ----------------------------------------------------------------------------------------------------------


def _link_of_ada(target: Target) -> bytes:
    made = ask(target, "POST /v1/logon/links", {"Authorization": f"Bearer {target.tokens['ada']}"})
    return json.dumps({"code": json.loads(made.body)["code"]}).encode()


def _redeem(target: Target, code: bytes, headers: Mapping[str, str] | None = None) -> Answer:
    host, port = target.address
    page = {**CONSOLE, "Origin": f"http://{host}:{port}", "Content-Type": "application/json"}
    return ask(target, "POST /v1/logon/link", {**page, **(headers or {})}, code)


def _used_link(target: Target) -> str:
    code = _link_of_ada(target)
    first, second = _redeem(target, code), _redeem(target, code)
    if first.status != 200:
        return f"not played: {first.status} {first.body!r}"
    return REFUSED if (second.status, "set-cookie" in second.headers) == (401, False) else PLAYED


def _link_of_another_page(target: Target) -> str:
    code = _link_of_ada(target)
    answer = _redeem(target, code, {"Origin": f"http://{EVIL}"})
    return REFUSED if answer.status == 403 and "set-cookie" not in answer.headers else PLAYED


def _fixed_session(target: Target) -> str:
    """Give Ada's browser a session of Bob's choice; she logs on, and has another one."""
    planted = "plt_s0123456789abcdef_" + "0" * 48
    answer = _redeem(target, _link_of_ada(target), cookie(target, planted))
    if answer.status != 200:
        return f"not played: {answer.status}"
    given = answer.headers["set-cookie"]
    opens = ask(target, "GET /v1/me", cookie(target, planted)).status != 401
    return PLAYED if opens or planted in given else REFUSED


def _cookie_for_others(target: Target) -> str:
    """Say whether the cookie goes to other hosts, to scripts, or along with what other sites ask for."""
    given = _redeem(target, _link_of_ada(target)).headers["set-cookie"].lower()
    wrong = [word for word in ("domain=", "samesite=lax", "samesite=none") if word in given]
    lacking = [word for word in ("httponly", "samesite=strict", "path=/") if word not in given]
    return REFUSED if not wrong and not lacking else f"{wrong} {lacking}"


def _cookie_of_another_port(target: Target) -> str:
    status = ask(target, "GET /v1/me", cookie(target, port=target.pool.port + 1)).status
    return REFUSED if status == 401 else f"answered {status}"


# -- addresses ---------------------------------------------------------------------------------------------------------


def _led_away(target: Target) -> str:
    """Say whether any address of the server leads a browser to another one."""
    paths = (f"/logon?to=//{EVIL}", f"//{EVIL}/", f"//{EVIL}/%2e%2e", f"/\\{EVIL}", f"//{EVIL}/v1/jobs/", "/v1/jobs/")
    for path in paths:
        leads = ask(target, f"GET {path}", PAGE).headers.get("location", "")
        if EVIL in leads.split("?")[0]:
            return f"{path} leads to {leads}"
    return REFUSED


def _stranger_as_proxy(target: Target) -> str:
    """Say for a proxy, which nobody trusts, where the server is and who asks."""
    said = {
        "X-Forwarded-Host": EVIL,
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Prefix": f"//{EVIL}/",
        "X-Forwarded-For": "10.9.8.7",
        "Forwarded": f"host={EVIL};proto=https;for=10.9.8.7",
        "X-Original-URL": "/v1/users",
        "X-Rewrite-URL": "/v1/users",
    }
    page = ask(target, "GET /jobs", {**PAGE, **said})
    if EVIL.encode() in page.body or EVIL in str(page.headers):
        return "the page is of another place"
    change = {**cookie(target), **CONSOLE, **said, "Origin": f"https://{EVIL}"}
    if ask(target, "POST /v1/tokens", change, b'{"label": "planted"}').status != 403:
        return "a change by another page is let in"
    _redeem(target, _link_of_ada(target), said)
    addresses = {session.address for session in target.ada.people.sessions()}
    return REFUSED if "10.9.8.7" not in addresses else "who asks is another"


def _traversed(target: Target) -> str:
    for path in PASSWD:
        for folder in ("/assets/", "/"):
            answer = ask(target, f"GET {folder}{path}")
            if b"root:" in answer.body or answer.status == 500:
                return f"{folder}{path}: {answer.status}"
    return REFUSED


def _page_of_an_api(target: Target) -> str:
    """Ask for what is not there, as a browser asks for a page: a program that believes it would read HTML."""
    for path in ("/v1/jobs/job-999", "/v1/nothing", "/v1/", "/dlim/v1/x", "/platform/rest/x", "/metrics/x"):
        answer = ask(target, f"GET {path}", {**PAGE, **cookie(target)})
        if "html" in answer.headers.get("content-type", "") or answer.status == 200:
            return f"{path}: {answer.status} {answer.headers.get('content-type')}"
    return REFUSED


def _method_in_a_header(target: Target) -> str:
    """Hide a change in a request that changes nothing, and needs no header of the console."""
    headers = {**cookie(target), "X-HTTP-Method-Override": "POST", "X-HTTP-Method": "POST", "X-Method-Override": "POST"}
    before = len(target.ada.people.tokens())
    ask(target, "GET /v1/tokens?_method=POST", headers, b'{"label": "planted"}')
    traced = ask(target, "TRACE /v1/me", cookie(target))
    if target.tokens["ada"].encode() in traced.body:
        return "the cookie is read out"
    return REFUSED if len(target.ada.people.tokens()) == before else PLAYED


# -- what people wrote -------------------------------------------------------------------------------------------------


def _shown(target: Target) -> str:
    """Let Bob's job leave pages, and open each as a page of the server, with his session."""
    job_id = target.run("showing.py", {}).id
    bobs = {**PAGE, **cookie(target, target.tokens["bob"])}
    listed = json.loads(ask(target, f"GET /v1/jobs/{job_id}/files", bobs).body)
    names = [file["path"] for file in listed["files"] if file["path"].endswith((".html", ".svg"))]
    if len(names) < 3:
        return f"not played: there are {names}"
    for name in names:
        answer = ask(target, f"GET /v1/jobs/{job_id}/files/{quote(name, safe='/')}", bobs)
        if (wrong := _runs(answer)) or answer.status != 200:
            return f"{name!r}: {answer.status}, {wrong}"
    return REFUSED


def _runs(answer: Answer) -> str:
    """Say what makes a browser run what a person wrote; nothing if nothing does."""
    headers = answer.headers
    if "planted" in str(headers.get("set-cookie")) or "set-cookie" in headers:
        return "its name is a header"
    if not headers.get("content-disposition", "").startswith("attachment"):
        return "it is shown, and not kept"
    if "sandbox" not in headers.get("content-security-policy", ""):
        return "it runs"
    return "" if headers.get("x-content-type-options") == "nosniff" else "its type is guessed"


def _printed(target: Target) -> str:
    """Let Bob's job print what moves a terminal, and read it as the console does."""
    job_id = target.run("showing.py", {}).id
    bobs = {**PAGE, **cookie(target, target.tokens["bob"])}
    answer = ask(target, f"GET /v1/jobs/{job_id}/logs/{job_id}.1/stdout/lines", bobs)
    if answer.status != 200 or b"alert(1)" not in answer.body:
        return f"not played: {answer.status} {answer.body[:100]!r}"
    if answer.headers["content-type"] != "application/json":
        return answer.headers["content-type"]
    raw = sorted({byte for byte in answer.body if byte < 32 and byte not in b"\r\n\t"})
    return f"sends {raw}" if raw else REFUSED


def _formula(target: Target) -> str:
    """Call a job by a formula, and read who used what as a table."""
    job_id = target.submit("bob", "nothing.py", {}, fixed=True, max_restarts=0, name='=HYPERLINK("evil")')
    target.bob.wait(job_id, timeout_s=60.0, poll_s=0.1)
    answer = ask(target, "GET /v1/usage/summary?by=job&format=csv", cookie(target, target.tokens["bob"]))
    if b"HYPERLINK" not in answer.body:
        return f"not played: {answer.status} {answer.body[:200]!r}"
    cells = answer.body.replace(b'"', b"").replace(b"\r\n", b",").split(b",")
    return PLAYED if any(cell.startswith((b"=", b"+", b"-", b"@")) for cell in cells) else REFUSED


def _cached(target: Target) -> str:
    for path in ("/", "/jobs", "/v1/me", "/v1/jobs", "/v1/usage/summary?format=csv", "/v1/logon"):
        control = ask(target, f"GET {path}", {**PAGE, **cookie(target)}).headers.get("cache-control", "")
        if "no-store" not in control:
            return f"{path}: {control!r}"
    return REFUSED


# -- too much ----------------------------------------------------------------------------------------------------------


def _too_much(headers: Mapping[str, str]) -> Callable[[Target], str]:
    """Return what sends so much before any body, and says whether it is taken, and others are served."""

    def play(target: Target) -> str:
        try:
            status = ask(target, "GET /v1/me", headers).status
        except OSError:
            status = 0
        if not target.ada.healthy():
            return "nobody else is served"
        return REFUSED if status in (0, 400, 401, 431) else f"answered {status}"

    return play


def _attack(name: str, play: Callable[[Target], str], expected: str = REFUSED) -> Attack:
    return Attack(group="console", name=name, expected=expected, play=play)


_SAME_SITE: Final = {"Sec-Fetch-Site": "same-site"}
ATTACKS: Final = (
    _attack("a change that the console asks for", _own_page, PLAYED),
    _attack("a form of another page", _other_page({**FORM, **_CROSS}, b"label=planted")),
    _attack("a form of another page, in the shape of JSON", _other_page({**PLAIN, **_CROSS})),
    _attack("a request of another page with the header of the console", _other_page({**CONSOLE, **_CROSS})),
    _attack("a request of a page without an origin", _other_page({**CONSOLE, "Origin": "null"})),
    _attack("a request of a page at another port", _other_page({**CONSOLE, "Origin": "http://127.0.0.1:1"})),
    _attack("a request without the header of the console", _other_page({"Content-Type": "application/json"})),
    _attack(
        "a request from the same site, not the same origin", _other_page({**CONSOLE, "Sec-Fetch-Site": "same-site"})
    ),
    _attack("logging on in somebody's browser by another page", _logged_on_by_another_page),
    _attack("asking first, as another page", _preflight),
    _attack("reading answers as another page", _read_by_another_page),
    _attack("a page whose name was rebound to the server's address", _rebound),
    _attack("the console in a frame of another page", _framed),
    _attack("a link to log on that was used", _used_link),
    _attack("a link to log on, by another page", _link_of_another_page),
    _attack("a session that was put into the browser before log-on", _fixed_session),
    _attack("the cookie at other hosts, to scripts, from other sites", _cookie_for_others),
    _attack("the cookie of a server at another port", _cookie_of_another_port),
    _attack("addresses that lead to another site", _led_away),
    _attack("a stranger who says it is a proxy", _stranger_as_proxy),
    _attack("files outside of the console's folder", _traversed),
    _attack("pages at addresses of the API", _page_of_an_api),
    _attack("a change hidden in a request that changes nothing", _method_in_a_header),
    _attack("pages and pictures that a job wrote, and names that are headers", _shown),
    _attack("lines of a log that move a terminal", _printed),
    _attack("a job named by a formula in a table", _formula),
    _attack("private answers that are kept by browsers and proxies", _cached),
    _attack("a cookie of a megabyte", _too_much({"Cookie": "a=" + "x" * (1 << 20)})),
    _attack("10,000 cookies", _too_much({"Cookie": "; ".join(f"a{number}=1" for number in range(10_000))})),
    _attack("1,000 headers", _too_much({f"X-{number}": "1" for number in range(1000)})),
)
