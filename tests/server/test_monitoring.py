"""`GET /metrics`: what Prometheus's own parser reads of it, who may, and that no name can forge a line."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from tests.server.conftest import Served
from tests.server.test_endpoints import deploy

from pliant.control.loop.measures import JobMeasures, VersionMeasures
from pliant.core.access import Permission, Role
from pliant.core.histogram import BATCH_BOUNDS, LATENCY_BOUNDS_S, BucketCounts, Histogram
from pliant.core.job import JobId, NodeId
from pliant.core.machine import DeviceFacts, MachineFacts, MeasuredMachine
from pliant.core.people import TokenSettings
from pliant.core.serving import Load, LoadTotals, VersionLoad
from pliant.server.monitoring.exposition import expose
from pliant.server.monitoring.families import FAMILIES, Scene
from pliant.server.monitoring.table import rows

DOCUMENT = Path(__file__).parents[2] / "docs" / "monitoring.md"


def scraped(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return every series that the text has, each once."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(one.name, frozenset(one.labels.items())): one.value for one in samples}
    assert len(found) == len(samples)
    return found


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def get(served: Served, headers: Mapping[str, str] | None = None) -> str:
    answer = served.http.get(f"http://{served.address}/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.text


def histogram(bounds: tuple[float, ...], *values: float) -> Histogram:
    counts = BucketCounts(bounds)
    for value in values:
        counts.add(value)
    return counts.histogram()


def totals(num: int) -> LoadTotals:
    return LoadTotals(
        succeeded=num,
        rejected=1,
        refused=2,
        latency_s=histogram(LATENCY_BOUNDS_S, *[0.02] * num, 90.0),
        batch_size=histogram(BATCH_BOUNDS, *[4.0] * num),
        busy_s=0.5 * num,
    )


def test_a_scrape_shows_slots_jobs_queues_and_endpoints(server: Served) -> None:
    server.submit()
    server.tick(1.0)
    deploy(server.http, kernel_max=3)
    server.load_model("digits")
    server.tick(1.0)
    (job_id,) = server.control.kernels.statuses()
    for num in (5, 7, 7):  # the last report comes twice
        load = VersionLoad(job_id=job_id, seconds=0.25, queued=3, in_flight=2, mean_load=5, totals=totals(num))
        server.control.kernels.take_load(Load(versions=(load,)))

    text = get(server)

    found = scraped(text)
    version = {"endpoint": "digits", "version": "1"}
    requests = [
        found[key("pliant_endpoint_requests_total", **version, outcome=outcome)]
        for outcome in ("success", "rejected", "error", "refused")
    ]
    assert requests == [7, 1, 0, 2]
    seconds = "pliant_endpoint_request_duration_seconds"
    assert [found[key(f"{seconds}_bucket", **version, le=le)] for le in ("0.01", "0.025", "60.0", "+Inf")] == (
        [0, 7, 7, 8]
    )
    assert found[key(f"{seconds}_sum", **version)] == pytest.approx(90.14)
    assert found[key("pliant_endpoint_batch_size_sum", **version)] == 28
    assert found[key("pliant_endpoint_queue_length", **version)] == 3
    assert found[key("pliant_endpoint_kernels", **version, state="ready")] == 1
    assert found[key("pliant_slots", node="local", state="held")] == 2
    assert found[key("pliant_jobs", state="starting", kind="elastic", queue="default")] == 1
    assert found[key("pliant_jobs", state="running", kind="endpoint", queue="default")] == 1
    assert found[key("pliant_job_slots", job=job_id, kind="endpoint", queue="default", owner="admin")] == 1
    assert found[key("pliant_queue_slots_held", queue="default")] == 2
    assert found[key("pliant_events_total", kind="job.submitted")] == 2
    assert found[key("pliant_schedule_duration_seconds_count")] >= 2
    assert found[key("pliant_tick_duration_seconds_count")] > found[key("pliant_schedule_duration_seconds_count")]
    assert {family.name for family in text_string_to_metric_families(text)} == {
        family.name.removesuffix("_total") for family in FAMILIES
    }


def test_what_ended_is_counted_and_leaves_the_gauges(server: Served) -> None:
    job_id = server.submit().json()["id"]
    server.http.post(f"/jobs/{job_id}/stop", params={"now": True})

    for _ in range(3):
        server.tick(1.0)
    found = scraped(get(server))

    assert found[key("pliant_jobs_ended_total", state="stopped")] == 1
    assert sum(value for (name, _), value in found.items() if name == "pliant_jobs") == 0


def test_who_may_read_metrics_and_what_such_a_token_may_not(module_server: Served) -> None:
    url = f"http://{module_server.address}/metrics"
    with module_server.client() as nobody:
        assert nobody.get(url).status_code == 401
    for role, status in ((Role.VIEWER, 403), (Role.USER, 403), (Role.OPERATOR, 200)):
        with module_server.client_of(f"a-{role}", role) as client:
            assert client.get(url).status_code == status

    token = module_server.people.credentials.make_token(
        "a-operator", TokenSettings(label="prometheus", scopes=frozenset({Permission.METRICS_READ}))
    )
    with module_server.client({"Authorization": f"Bearer {token.text}"}) as scraper:
        assert (scraper.get(url).status_code, scraper.get("/jobs").status_code) == (200, 403)
    module_server.forget_people()


@pytest.mark.parametrize(
    "accept", ["", "*/*", "text/plain;version=x", "application/openmetrics-text-2", ",;=,;q", "text/html"]
)
def test_who_asks_for_nothing_known_gets_prometheus_text(module_server: Served, accept: str) -> None:
    answer = module_server.http.get(f"http://{module_server.address}/metrics", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")


def test_openmetrics_is_for_who_asks(module_server: Served) -> None:
    accept = "application/openmetrics-text;version=99\x7f;escaping=allow-utf-8;q=0.5,text/plain"
    answer = module_server.http.get(f"http://{module_server.address}/metrics", headers={"Accept": accept})

    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    names = {family.name for family in read_openmetrics(answer.text)}  # type: ignore[no-untyped-call]
    assert {"pliant_slots", "pliant_events", "pliant_schedule_duration_seconds"} <= names


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])
def test_a_hostile_name_forges_no_line(module_server: Served, accept: str) -> None:
    hostile = 'x"} 1\npliant_slots{node="forged",state="free"} 99\n# EOF\n\\'
    pool = module_server.control.measures.take()
    holder = JobMeasures(kind="elastic", queue=hostile, owner=hostile, held=1, target=1)
    load = VersionLoad(job_id=JobId("job-1"), seconds=1.0)
    version = VersionMeasures(
        job_id=JobId("job-1"), owner=hostile, queue=hostile, wanted=1, kernels={"ready": 1}, load=load
    )
    scene = Scene(
        pool=replace(pool, holders={JobId("job-1"): holder}, versions={(hostile, 1): version}), num_gateways=1
    )

    text = expose(scene, accept)[0].decode()

    read = read_openmetrics if accept else text_string_to_metric_families
    samples = [sample for family in read(text) for sample in family.samples]
    assert not [one for one in samples if one.labels.get("node") == "forged"]
    assert {one.labels["endpoint"] for one in samples if "endpoint" in one.labels} == {hostile}
    assert {one.labels["owner"] for one in samples if "owner" in one.labels} == {hostile}


def test_the_load_over_time_is_shown_to_those_with_whom_the_endpoint_is_shared(server: Served) -> None:
    server.add_user("ada")
    deploy(server.http, shared_with=["ada"])
    server.load_model("digits")
    (job_id,) = server.control.kernels.statuses()
    load = VersionLoad(job_id=job_id, seconds=2.0, completed=50, num_ready=1)
    server.control.kernels.take_load(Load(versions=(load,)))

    with server.client_of("ada") as ada, server.client_of("bob") as bob:
        points = ada.get("/endpoints/digits/metrics", params={"series": "requests_per_s"}).json()["points"]
        assert [(point["name"], point["value"]) for point in points] == [("requests_per_s", 25.0)]
        assert ada.get(f"/jobs/{job_id}/metrics").status_code == 404
        assert bob.get("/endpoints/digits/metrics").status_code == 404
        unknown = ada.get("/endpoints/digits/metrics", params={"version": 7})
    assert (unknown.status_code, unknown.json()["detail"]) == (
        404,
        "digits has no version 7 that has run; its versions are 1",
    )


def test_the_document_has_the_table_of_all_metrics() -> None:
    (table,) = re.findall(r"<!-- .*monitoring.table -->\n(.*?)\n<!-- -->", DOCUMENT.read_text(), re.DOTALL)

    assert table.splitlines() == [*rows()], "run: python -m pliant.server.monitoring.table"


def test_a_scrape_shows_how_machines_and_their_gpus_are_unless_they_tell_no_more(server: Served) -> None:
    gpu = DeviceFacts(slot=1, model='H"200', memory_bytes=144 << 30, memory_used_bytes=1 << 30, utilisation=0.5)
    facts = MachineFacts(load=2.5, memory_bytes=8 << 30, memory_used_bytes=1 << 30, devices=(gpu,))
    server.cluster.machines[NodeId("local")] = MeasuredMachine(facts=facts, age_s=5.0)
    server.control.inquiries.machines.out_of_use.exclude("local", [3], "ECC errors", "bob")

    found = scraped(get(server))
    device = {"node": "local", "slot": "1", "model": 'H"200'}
    assert found[key("pliant_node_load", node="local")] == 2.5
    assert found[key("pliant_gpu_memory_used_bytes", **device)] == 1 << 30
    assert found[key("pliant_gpu_busy_ratio", **device)] == 0.5
    assert key("pliant_gpu_temperature_celsius", **device) not in found
    assert found[key("pliant_slots", node="local", state="excluded")] == 1

    server.cluster.machines[NodeId("local")] = MeasuredMachine(facts=facts, age_s=61.0)
    assert key("pliant_node_load", node="local") not in scraped(get(server))
