"""The description of the gateway's routes is one, is complete, and everybody may have it."""

import schemathesis
from schemathesis.core.result import Ok
from tests.serve.gateway.played import endpoint, in_loop, played, version

from pliant.serve.gateway.route import RouteKind, find_route


@in_loop
async def test_every_route_is_described_and_every_described_route_is_there() -> None:
    async with played(endpoint(version())) as world:
        answer = await world.client.get("/openapi.json")
        document = answer.json()

    assert answer.headers["content-type"] == "application/json"
    described = schemathesis.openapi.from_dict(document)
    found = list(described.get_all_operations())
    operations = [one.ok() for one in found if isinstance(one, Ok)]
    assert len(operations) == len(found) == 23
    kinds = {
        find_route(one.method.upper(), one.path.replace("{name}", "digits").replace("{version}", "3")).kind
        for one in operations
    }
    assert kinds == set(RouteKind) - {RouteKind.NOT_HERE}
    for one in operations:
        one.get_strategies_from_examples()  # reads its whole schema
    unnamed = [path for path, item in document["paths"].items() if "security" in next(iter(item.values()))]
    assert unnamed == ["/openapi.json", "/v2/health/live", "/v2/health/ready"]


@in_loop
async def test_the_description_names_what_a_refusal_is() -> None:
    async with played(endpoint(version())) as world:
        document = (await world.client.get("/openapi.json")).json()
        refusal = (await world.client.get("/v2/models/digits")).json()
    assert set(refusal) == set(document["components"]["schemas"]["Error"]["properties"])
