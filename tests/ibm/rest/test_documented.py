"""docs/wmla.md says of every route and option what there is; every call of IBM's client has a route."""

import inspect
import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from ibm_wmla.wmla_api_edi_v2 import ElasticDistributedInferenceV2
from ibm_wmla.wmla_api_v1 import DeepLearningImpactV1, HyperParameter

from pliant.ibm.rest.api import IBM
from pliant.ibm.rest.errors import DEEP_LEARNING
from pliant.ibm.rest.routes import absent
from pliant.ibm.rest.translate.flags import FLAGS, Support
from pliant.ibm.rest.translate.hyper import NAMES

DOCUMENT = Path(__file__).parents[3] / "docs" / "wmla.md"
ROW = re.compile(r"^\| `((?:GET|POST|PUT|DELETE) \S+|--\S+)` \| (\w+) \| (.*) \|$", re.MULTILINE)


ROUTES = [
    (method, route)
    for routes in IBM.routes
    for route in routes.router.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods or ())
]

WITHOUT_EFFECT = frozenset(
    {
        "maxiteration",
        "cycle",
        "hiddenstatesize",
        "optdecay",
        "accumulator",
        "l1_regularization",
        "l2_regularization",
        "lr_power",
        "t0",
        "mode",
        "threshold",
        "threshold_mode",
        "cooldown",
        "eps",
    }
)


def rows() -> dict[str, tuple[str, str]]:
    found = ROW.findall(DOCUMENT.read_text())
    assert len({name for name, _, _ in found}) == len(found)
    return {name: (support, how) for name, support, how in found}


def test_every_route_is_documented_and_no_other() -> None:
    there = {
        f"{method} {route.path.removeprefix(DEEP_LEARNING)}"
        for method, route in ROUTES
        if not route.path.endswith(("/", absent.UNKNOWN))
    }
    assert {name for name in rows() if not name.startswith("--")} == there


def test_every_option_is_documented_as_it_is() -> None:
    documented = {name: row for name, row in rows().items() if name.startswith("--")}
    assert documented == {flag.name: (str(flag.support), flag.how) for flag in FLAGS.values()}


def test_what_is_not_here_is_documented_as_such() -> None:
    wanted = {f"{method} {path}": why for (method, path), why in absent.ABSENT.items()}
    found = rows()
    assert {name: found[name] for name in wanted} == {name: ("no", why) for name, why in wanted.items()}
    assert all(support in set(Support) and (how or support == "yes") for support, how in found.values())


@pytest.mark.parametrize(("client", "least"), [(DeepLearningImpactV1, 80), (ElasticDistributedInferenceV2, 23)])
def test_every_call_of_ibm_s_clients_has_a_route(client: type, least: int) -> None:
    calls = 0
    for _, method in inspect.getmembers(client, inspect.isfunction):
        source = inspect.getsource(method)
        path = re.search(r"url = '(/(?:platform/rest|dlim)/[^']*)'", source)
        verb = re.search(r"prepare_request\(method='(\w+)'", source)
        if path is None or verb is None:
            continue
        calls += 1
        made = re.sub(r"\{\w+\}", "x", path[1])
        found = [r for method, r in ROUTES if method == verb[1] and r.path_regex.fullmatch(made)]
        assert found, f"{verb[1]} {path[1]}"
        assert not found[0].path.endswith(absent.UNKNOWN), f"{verb[1]} {path[1]}"
    assert calls > least


def test_every_hyperparameter_of_ibm_s_client_is_known() -> None:
    theirs = set(inspect.signature(HyperParameter.__init__).parameters) - {"self"}
    assert theirs == set(NAMES) | WITHOUT_EFFECT
    assert not set(NAMES) & WITHOUT_EFFECT
