"""What people get over HTTP: routes, who may see what, limits, and what changes while requests wait."""

import gzip
import zlib
from typing import Any

import pytest
from tests.serve.gateway.played import METADATA, DirectCall, endpoint, in_loop, played, version

from pliant.serve.gateway.admission import Admission


@in_loop
async def test_metadata_configuration_and_index_are_as_triton_clients_read_them() -> None:
    async with played(endpoint(version(1, weight=0), version(2, job="job-10", metadata=METADATA))) as world:
        await world.kernel("job-10.0")

        server = (await world.get("/v2/")).json()
        assert server["name"] == "pliant"
        assert {"binary_tensor_data", "statistics", "model_repository"} <= set(server["extensions"])
        expected = {
            "name": "digits",
            "versions": ["1", "2"],
            **{key: METADATA[key] for key in ("platform", "inputs", "outputs")},
        }
        assert (await world.get("/v2/models/digits")).json() == expected
        assert (await world.get("/v2/models/digits/versions/1")).json()["inputs"] == []
        config = (await world.get("/v2/models/digits/versions/2/config")).json()
        assert config["max_batch_size"] == 8
        assert config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}]
        assert config["output"] == [{"name": "y", "data_type": "TYPE_STRING", "dims": []}]
        assert "dynamic_batching" in config
        assert config["model_transaction_policy"] == {"decoupled": False}
        index = (await world.client.post("/v2/repository/index", headers={"X-User-Token": "ada"})).json()
        assert [(one["name"], one["version"], one["state"]) for one in index] == [
            ("digits", "1", "UNAVAILABLE"),
            ("digits", "2", "READY"),
        ]


@in_loop
async def test_statistics_have_every_field_that_perf_analyzer_reads() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posts = [world.post(), world.post()]
        first, second = await kernel.request(), await kernel.request()
        world.now[0] += 1
        kernel.answer(first, busy_s=0.25, batch=2)
        kernel.answer(second, status=400)
        for post in posts:
            await post

        (stats,) = (await world.get("/v2/models/digits/stats")).json()["model_stats"]
        assert (await world.get("/v2/models/stats")).json() == {"model_stats": [stats]}
        assert (stats["inference_count"], stats["execution_count"]) == (1, 1)
        one = stats["inference_stats"]
        assert one.keys() == {
            *("success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")
        }
        assert (one["success"], one["fail"]) == ({"count": 1, "ns": 10**9},) * 2
        assert stats["batch_stats"][0]["compute_infer"] == {"count": 1, "ns": 250_000_000}


@in_loop
async def test_ibms_route_passes_bodies_on_as_they_are() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post(b"anything", "/dlim/v1/inference/digits")
        request = await kernel.request()
        kernel.answer(request, b"<answer>", type="text/plain; charset=utf-8")
        response = await posted

        assert (request.header["api"], request.body) == ("dlim", b"anything")
        assert (response.text, response.headers["content-type"]) == ("<answer>", "text/plain; charset=utf-8")


@in_loop
async def test_a_model_is_ready_if_it_answers_or_would_after_a_cold_start() -> None:
    loaded = version(metadata=METADATA)
    for served, expected in [
        (endpoint(version()), 503),
        (endpoint(loaded), 200),
        (endpoint(loaded, kernel_min=1), 503),
        (endpoint(loaded, started=False), 503),
        (endpoint(), 503),
    ]:
        async with played(served) as world:
            response = await world.get("/v2/models/digits/ready")
            assert (response.status_code, response.json()["ready"]) == (expected, expected == 200)


@in_loop
async def test_health_needs_no_token_and_is_not_ready_before_the_server_has_spoken_nor_at_the_end() -> None:
    async with played() as world:
        assert (await world.client.get("/v2/health/live")).status_code == 200
        assert (await world.client.get("/v2/health/ready")).status_code == 503
        world.apply(endpoint(version()))
        assert (await world.client.get("/v2/health/ready")).status_code == 200
        await world.gateway.drain(1)
        assert (await world.client.get("/v2/health/ready")).status_code == 503


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v2/models", 404),
        ("GET", "/v2/models/digits/nonsense", 404),
        ("GET", "/v2/models/digits/versions/x", 404),
        ("GET", "/v2/models/digits/versions/7", 404),
        ("GET", "/v2/" + "x" * 5000, 404),
        ("GET", "/v2/models/digits/infer", 405),
        ("POST", "/v2/models/digits", 405),
        ("POST", "/v2/systemsharedmemory/region/r/register", 501),
        ("GET", "/v2/cudasharedmemory/status", 501),
        ("GET", "/v2/trace/setting", 501),
        ("POST", "/v2/logging", 501),
        ("GET", "/v2/repository/models/digits/load", 405),
    ],
)
@in_loop
async def test_what_is_not_there_says_so(method: str, path: str, status: int) -> None:
    async with played(endpoint(version())) as world:
        response = await world.client.request(method, path, headers={"X-Auth-Token": "ada"})
        assert response.status_code == status
        assert isinstance(response.json()["error"], str)
        assert ("allow" in response.headers) is (status == 405)


@pytest.mark.parametrize("path", ["/v2", "/v2/models/digits", "/v2/models/stats", "/v2/logging", "/v2/models/no/ready"])
@in_loop
async def test_everything_but_health_wants_a_token(path: str) -> None:
    async with played(endpoint(version())) as world:
        nobody = await world.client.get(path)
        assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")
        assert (await world.get(path, token="stranger")).status_code == 401
        assert (await world.get(path, token="viewer")).status_code == 403
        away = await world.get(path, token="away")
        assert (away.status_code, away.headers["retry-after"]) == (503, "1")


@in_loop
async def test_an_endpoint_that_is_not_shared_is_not_there() -> None:
    async with played(endpoint(version()), endpoint(version(job="job-8"), name="open", shared_with=("*",))) as world:
        hidden = await world.post(token="bob")
        missing = await world.post(path="/v2/models/digitz/infer", token="bob")
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text == missing.text.replace("digitz", "digits")
        assert hidden.headers.keys() == missing.headers.keys()
        for who, names in [("bob", ["open"]), ("ada", ["digits", "open"]), ("root", ["digits", "open"])]:
            stats = (await world.get("/v2/models/stats", token=who)).json()["model_stats"]
            assert [one["name"] for one in stats] == names

        world.apply(endpoint(version(), shared_with=("bob",)))
        assert (await world.get("/v2/models/digits", token="bob")).status_code == 200


@pytest.mark.parametrize("encoding", [None, "gzip", "deflate", "bare deflate", "gzip of two members"])
@in_loop
async def test_bodies_may_be_compressed_up_to_the_limit_they_have_then(encoding: str | None) -> None:
    limit = 700_000  # more than the pieces in which it is decompressed
    async with played(endpoint(version(), max_body_bytes=limit)) as world:
        world.spawn((await world.kernel()).echo())
        for num, status in ((limit, 200), (limit + 1, 413), (50 * limit, 413)):
            body, headers = _compress(b"7" * num, encoding)
            response = await world.post(body, **headers)
            assert response.status_code == status
            assert status != 200 or response.content == b"7" * num
        assert sum(load.refused for load in world.gateway.loads()) == 2


def _compress(body: bytes, encoding: str | None) -> tuple[bytes, dict[str, str]]:
    if encoding is None:
        return body, {}
    if encoding == "deflate":
        return zlib.compress(body), {"Content_Encoding": "deflate"}
    if encoding == "bare deflate":
        bare = zlib.compressobj(wbits=-15)
        return bare.compress(body) + bare.flush(), {"Content_Encoding": "deflate"}
    members = (body[:9], body[9:]) if encoding == "gzip of two members" else (body,)
    return b"".join(map(gzip.compress, members)), {"Content_Encoding": "gzip"}


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@in_loop
async def test_a_compressed_body_may_come_in_any_pieces(chunk: int) -> None:
    async with played(endpoint(version())) as world:
        world.spawn((await world.kernel()).echo())
        for headers, data in (
            ({"Content-Encoding": "gzip"}, gzip.compress(b"hello" * 50, mtime=0)),
            ({"Content-Encoding": "deflate"}, _compress(b"hello" * 50, "bare deflate")[0]),
        ):
            call = DirectCall(world, headers)
            for at in range(0, len(data), chunk):
                call.feed(data[at : at + chunk], more=at + chunk < len(data))
            await call.task
            assert (call.status, call.body) == (200, b"hello" * 50)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"no gzip at all", {"Content_Encoding": "gzip"}),
        (gzip.compress(b"x" * 999, mtime=0)[:-9], {"Content_Encoding": "gzip"}),
        (gzip.compress(b"x", mtime=0) + b"rest", {"Content_Encoding": "gzip"}),
        (b"", {"Content_Encoding": "gzip"}),
        (b"x", {"Content_Encoding": "br"}),
        (b"{}", {"Inference_Header_Content_Length": "3"}),
        (b"{}", {"Inference_Header_Content_Length": "-1"}),
        (b"{}", {"X_Request_Timeout_S": "nan"}),
        (b"{}", {"X_Request_Timeout_S": "soon"}),
    ],
)
@in_loop
async def test_what_cannot_be_understood_is_refused(body: bytes, headers: dict[str, str]) -> None:
    async with played(endpoint(version())) as world:
        response = await world.post(body, **headers)
        assert response.status_code == 400
        assert world.load() == (0, 0)


@in_loop
async def test_a_body_that_is_too_long_is_not_read_to_its_end() -> None:
    async with played(endpoint(version(), max_body_bytes=10)) as world:
        declared = DirectCall(world, {"Content-Length": "1000000"})
        await declared.task
        streamed = DirectCall(world, {"Transfer-Encoding": "chunked"})
        streamed.feed(b"x" * 6, more=True)
        streamed.feed(b"x" * 6, more=True)
        await streamed.task

        assert (declared.status, streamed.status) == (413, 413)
        assert (b"connection", b"close") in declared.sent[0]["headers"]
        assert (b"connection", b"close") in streamed.sent[0]["headers"]


@in_loop
async def test_a_body_that_comes_too_slowly_is_given_up() -> None:
    async with played(endpoint(version())) as world:
        slow = DirectCall(world)
        slow.feed(b"{", more=True)
        await world.until(lambda: slow.messages.empty())
        world.advance(59)
        assert not slow.task.done()
        world.advance(2)
        await slow.task

        assert slow.status == 408
        assert world.load() == (0, 0)


@in_loop
async def test_a_client_that_leaves_before_its_body_is_whole_gets_nothing() -> None:
    async with played(endpoint(version())) as world:
        call = DirectCall(world)
        call.feed(b"{", more=True)
        call.disconnect()
        await call.task

        assert call.sent == []
        assert world.num_urged == []


@in_loop
async def test_a_full_queue_refuses_and_says_when_to_try_again() -> None:
    async with played(endpoint(version(), max_queue=2)) as world:
        posts = [world.post(b"%d" % number) for number in range(2)]
        await world.until(lambda: world.load() == (2, 0))
        refused = await world.post()
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert sum(load.refused for load in world.gateway.loads()) == 1

        world.spawn((await world.kernel()).echo())
        assert [(await post).content for post in posts] == [b"0", b"1"]


@in_loop
async def test_the_process_takes_in_so_many_requests_and_bytes_at_once() -> None:
    async with played(endpoint(version()), admission=Admission(max_requests=2, max_bytes=10)) as world:
        first = world.post(b"x" * 20)  # alone it may be longer
        await world.until(lambda: world.load() == (1, 0))
        too_much = await world.post(b"x")
        second = world.spawn(world.client.post("/v2/models/digits/infer", headers={"X-Auth-Token": "ada"}))
        await world.until(lambda: world.load() == (2, 0))
        one_too_many = await world.post(b"")

        assert (too_much.status_code, one_too_many.status_code) == (503, 503)
        assert "retry-after" in one_too_many.headers
        world.spawn((await world.kernel()).echo())
        assert [(await post).status_code for post in (first, second)] == [200, 200]
        assert (await world.post(b"x" * 20)).status_code == 200


@in_loop
async def test_traffic_is_shared_by_weight_and_a_named_version_gets_its_own() -> None:
    served = endpoint(version(1, weight=3), version(2, job="job-10", weight=1), version(3, job="job-11", weight=0))
    async with played(served) as world:
        for job in ("job-9.0", "job-10.0", "job-11.0"):
            world.spawn((await world.kernel(job)).echo())

        chosen = [(await world.post()).headers["pliant-version"] for _ in range(8)]
        named = await world.post(path="/v2/models/digits/versions/3/infer")

        assert sorted(chosen) == ["1"] * 6 + ["2"] * 2
        assert named.headers["pliant-version"] == "3"


@in_loop
async def test_requests_of_a_version_that_is_gone_go_to_the_next_and_those_that_named_it_do_not() -> None:
    async with played(endpoint(version(1))) as world:
        kernel = await world.kernel()
        held, waiting, third = world.post(b"held"), world.post(b"waiting"), world.post(b"third")
        named = world.post(path="/v2/models/digits/versions/1/infer")
        await world.until(lambda: world.load() == (2, 2))
        world.apply(endpoint(version(2, job="job-10")))

        assert (await named).status_code == 404
        assert world.load() == (3, 0)
        world.spawn((await world.kernel("job-10.0")).echo())
        answers = [await one for one in (held, waiting, third)]
        assert [one.content for one in answers] == [b"held", b"waiting", b"third"]
        assert {one.headers["pliant-version"] for one in answers} == {"2"}
        while await kernel.next() is not None:
            pass  # it was given two, and is cut off


@in_loop
async def test_requests_do_not_wait_for_a_version_that_has_lost_its_kernels_and_its_traffic() -> None:
    async with played(endpoint(version(1), version(2, job="job-10", weight=0))) as world:
        waiting = world.post(b"waiting")
        named = world.post(b"named", path="/v2/models/digits/versions/1/infer")
        await world.until(lambda: world.load() == (2, 0))
        world.apply(endpoint(version(1, weight=0), version(2, job="job-10")))
        world.spawn((await world.kernel("job-10.0")).echo())

        assert (await waiting).headers["pliant-version"] == "2"
        assert not named.done()
        world.spawn((await world.kernel("job-9.0")).echo())
        assert (await named).headers["pliant-version"] == "1"


@in_loop
async def test_a_version_that_goes_on_in_another_job_keeps_its_requests() -> None:
    async with played(endpoint(version(1))) as world:
        posted = world.post(b"x")
        await world.until(lambda: world.load() == (1, 0))
        world.apply(endpoint(version(1, job="job-12")))
        world.spawn((await world.kernel("job-12.0")).echo())

        assert (await posted).content == b"x"


@pytest.mark.parametrize(
    ("served", "status"),
    [
        ((), 404),
        ((endpoint(version(), started=False, why_not="ada stopped it"),), 503),
        ((endpoint(why_not="ada stopped it"),), 503),
        ((endpoint(version(weight=0), why_not="ada stopped it"),), None),
    ],
)
@in_loop
async def test_requests_that_wait_for_what_is_gone_or_stopped_are_answered(served: Any, status: int | None) -> None:
    async with played(endpoint(version())) as world:
        posted = world.post()
        await world.until(lambda: world.load() == (1, 0))
        world.apply(*served)
        if status is None:  # it still serves what it has
            world.spawn((await world.kernel()).echo())
        waited, late = await posted, await world.post()

        assert waited.status_code == (status or 200)
        assert late.status_code == (status or 503)
        if late.status_code == 503:
            assert "ada stopped it" in late.json()["error"]
            assert "retry-after" in late.headers


@in_loop
async def test_things_may_change_while_a_body_comes() -> None:
    async with played(endpoint(version())) as world:
        gone, moved = DirectCall(world), DirectCall(world)
        for call in (gone, moved):
            call.feed(b"{", more=True)
            await world.until(call.messages.empty)
        world.apply(endpoint(version(2, job="job-10")))
        world.spawn((await world.kernel("job-10.0")).echo())
        moved.feed(b"}")
        await moved.task
        world.apply()
        gone.feed(b"}")
        await gone.task

        assert (moved.status, moved.body) == (200, b"{}")
        assert gone.status == 404


@in_loop
async def test_at_the_end_nothing_new_is_taken_and_what_is_under_way_is_finished() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post(b"x")
        request = await kernel.request()
        await world.gateway.drain(0.01)  # in vain
        draining = world.spawn(world.gateway.drain(20))
        refused = await world.post()
        assert (refused.status_code, draining.done()) == (503, False)
        kernel.answer(request)

        assert (await posted).content == b"x"
        await draining


@in_loop
async def test_a_fault_of_ours_is_answered_and_harms_no_other_request() -> None:
    async with played(endpoint(version())) as world:
        response = await world.post(token="broken")

        assert response.status_code == 500
        assert "fault" in response.json()["error"]
        world.spawn((await world.kernel()).echo())
        assert (await world.post(b"x")).content == b"x"


@in_loop
async def test_to_a_token_for_named_endpoints_no_other_exists_whatever_is_asked() -> None:
    other = endpoint(version(job="job-10", metadata=METADATA), name="mnist")
    async with played(endpoint(version(metadata=METADATA)), other) as world:
        world.limit("shop", "digits")

        async def said(name: str, path: str) -> tuple[int, str]:
            response = await world.get(f"/v2/models/{name}{path}", "shop")
            return response.status_code, response.text.replace(name, "NAME")

        for path in ("", "/ready", "/config", "/stats", "/versions/1", "/versions/1/ready"):
            assert (await said("digits", path))[0] == 200, path
            assert await said("mnist", path) == await said("nothing", path), path
            assert (await said("mnist", path))[0] == 404, path
        for path in ("/v2/models/mnist/infer", "/v2/models/mnist/versions/1/infer", "/dlim/v1/inference/mnist"):
            assert (await world.post(path=path, token="shop")).status_code == 404, path
        index = await world.client.post("/v2/repository/index", headers={"X-Auth-Token": "shop"})
        assert [one["name"] for one in index.json()] == ["digits"]
        stats = (await world.get("/v2/models/stats", "shop")).json()["model_stats"]
        assert [one["name"] for one in stats] == ["digits"]


@in_loop
async def test_the_limits_of_a_token_hold_for_it_and_for_no_other_and_refusals_are_counted() -> None:
    async with played(endpoint(version(), pipe_size=8)) as world:
        kernel = await world.kernel()
        world.limit("slow", max_rate=2.0)
        world.limit("narrow", max_concurrent=1)
        world.spawn(kernel.echo())
        answers = [await world.post(token="slow") for _ in range(3)]
        assert [one.status_code for one in answers] == [200, 200, 429]
        assert answers[2].headers["retry-after"] == "1"
        assert (
            "2 requests a second with this token are taken; send the next one in 0.500 s" in answers[2].json()["error"]
        )
        assert (await world.post()).status_code == 200, "another token of the same person"
        world.now[0] += 0.5
        assert [(await world.post(token="slow")).status_code for _ in range(2)] == [200, 429]
        assert [(await world.post(token="narrow")).status_code for _ in range(3)] == [200] * 3
        assert [load.refused for load in world.gateway.loads()] == [2]


@in_loop
async def test_a_token_has_so_many_requests_under_way_until_they_are_over_however_they_end() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        world.limit("narrow", max_concurrent=1)
        first = world.post(token="narrow")
        frame = await kernel.request()
        assert (await world.post(token="narrow")).status_code == 429
        kernel.answer(frame, status=400)
        assert (await first).status_code == 400
        left = DirectCall(world, {"Authorization": "Bearer narrow"})  # its client leaves before the body is whole
        left.feed(b"{", more=True)
        await world.until(lambda: left.messages.empty())
        assert (await world.post(token="narrow")).status_code == 429
        left.messages.put_nowait({"type": "http.disconnect"})
        await left.task
        last = world.post(token="narrow")
        kernel.answer(await kernel.request())
        assert (await last).status_code == 200
