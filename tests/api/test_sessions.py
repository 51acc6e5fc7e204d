"""The address of a one-time link: it leads to the server that made it, and to one of its pages."""

import pytest

from pliant.api.sessions import LogonLinkView, inside, link_url
from pliant.core.errors import InvalidInput


def link(root_path: str = "") -> LogonLinkView:
    return LogonLinkView(code="c0de", expires_at=1.0, root_path=root_path)


def test_the_code_stands_where_no_server_is_sent_it() -> None:
    assert link_url("http://127.0.0.1:7311", link()) == "http://127.0.0.1:7311/logon#code=c0de"
    assert (
        link_url("http://h:1/", link(), "/jobs/job-7?q=a&b#x")
        == "http://h:1/logon?to=/jobs/job-7%3Fq%3Da%26b%23x#code=c0de"
    )


@pytest.mark.parametrize("url", ["https://h/pliant", "https://h/pliant/", "https://h", "https://h/"])
def test_it_lies_below_the_path_of_the_server(url: str) -> None:
    assert link_url(url, link("/pliant")) == "https://h/pliant/logon#code=c0de"


@pytest.mark.parametrize("to", ["/", "/jobs", "/jobs/job-7/metrics?from=-1h&by=job", "/a..b", "/jobs?x=//y"])
def test_a_page_of_the_server_is_one(to: str) -> None:
    assert inside(to) == to


@pytest.mark.parametrize(
    "to",
    [
        "",
        "jobs",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/../evil",
        "/a/..",
        "/./x",
        "/a\tb",
        "/\n/evil",
        " /jobs",
        "/ü",
        "/" + "x" * 1000,
    ],
)
def test_what_leads_elsewhere_is_refused(to: str) -> None:
    with pytest.raises(InvalidInput, match="is no page of this server"):
        inside(to)
