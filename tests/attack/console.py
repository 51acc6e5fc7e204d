"""What another page, or a stranger in front of the server, makes of the console and of a session in its cookie."""

import json
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from tests.attack.attack import REFUSED, Attack
from tests.attack.browser import CONSOLE, EVIL, JSON, PAGE, Answer, ask, cookie, link_of_ada, own, redeem
from tests.attack.target import Target

PLAYED: Final = "succeeded"
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
    return _changed(target, {**own(target), **JSON}, b'{"label": "own"}')


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
    redeem(target, link_of_ada(target), said)
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
