"""The commands about endpoints against a real server, and a gateway of one model."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.server.conftest import packed
from tests.server.played import Played
from tests.tiny_gateway import Gateway, tiny_gateway

from pliant.api.endpoints import KernelView
from pliant.cli.endpoints.asked import OF_DEPLOYMENT, OF_ENDPOINT
from pliant.cli.endpoints.deploy import fit_name
from pliant.cli.endpoints.example import example_document
from pliant.cli.endpoints.settings_table import rows
from pliant.core.histogram import Histogram
from pliant.core.job import JobId, JobSpec
from pliant.core.serving import KernelReady, Load, LoadTotals, VersionLoad
from pliant.core.serving_profile import EndpointPart, ServingProfile

PAGE = Path(__file__).parents[2] / "docs" / "endpoints.md"
KERNEL = KernelView(task_id="job-1.1", state="ready", node_id="local", slots=(0,), started_at=1000.0, pid=77)
LOAD = VersionLoad(
    job_id=JobId("job-1"),
    seconds=2.0,
    in_flight=3,
    queued=4,
    completed=50,
    latency_s={"p50": 0.01, "p95": 0.25},
    totals=LoadTotals(succeeded=90, refused=2, batch_size=Histogram((0, 30), 90.0)),
)
METADATA = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]}


@pytest.fixture
def gateway(shown: Played) -> Iterator[Gateway]:
    """A gateway; models load when they are looked at twice."""
    with tiny_gateway(shown.token) as gateway:
        shown.endpoints.http_url, shown.endpoints.grpc_address = gateway.url, "127.0.0.1:7313"
        shown.endpoints.load_after_looks = 2
        yield gateway
    shown.endpoints.http_url = shown.endpoints.grpc_address = shown.endpoints.load_after_looks = None
    shown.endpoints.kernels.clear()
    shown.endpoints.loads.clear()
    for one in shown.http.get("/endpoints").json()["endpoints"]:
        shown.http.delete(f"/endpoints/{one['name']}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "digits"
    folder.mkdir()
    (folder / "serve.py").write_text("def load(): ...\n")
    return folder


def serve(shown: Played) -> None:
    """Let the endpoint `digits` have a kernel, and something to do."""
    shown.endpoints.kernels["digits"] = (KERNEL,)
    shown.endpoints.loads["digits"] = LOAD


def test_top_shows_endpoints_beside_trainings(run: Run, shown: Played, gateway: Gateway, folder: Path) -> None:
    run(shown, "deploy", str(folder), "--name", "digits")
    serve(shown)

    out = run(shown, "top", "--once").out

    (titles,) = [line for line in out.splitlines() if "KERNELS" in line]
    (row,) = [line for line in out.splitlines() if "digits v1" in line]
    assert titles.split() == ["JOB", "ENDPOINT", "STATE", "KERNELS", "REQ/S", "P95", "WAITING", "WHY"]
    assert row.split()[:8] == ["job-1", "digits", "v1", "serving", "1/1", "25", "250", "ms"]
    assert row.split()[8] == "4"
    assert re.search(r"job-1 +digits +running", out), "the training is there, too"
    (seen,) = json.loads(run(shown, "top", "--once", "--json").out)["endpoints"]
    assert (seen["name"], seen["versions"][0]["load"]["completed"]) == ("digits", 50)


def test_kernels_serve_and_train_nothing(run: Run, pool: Played, tmp_path: Path) -> None:
    archive = tmp_path / "model.tar.gz"
    archive.write_bytes(packed({"serve.py": "class Model: ...\n"}))
    part = EndpointPart(name="digits", version=2, runner="python", profile=ServingProfile(kernel_max=3))
    spec = JobSpec(name="digits-v2", script="serve.py", max_tasks=3, virtual_workers=3, endpoint=part)
    job = pool.control.requests.submit(spec, archive, "admin")
    pool.tick(1.0)
    (task,) = pool.control.kernels.statuses()[job.id].kernels
    pool.control.kernels.kernel_ready(KernelReady(task_id=task.id))
    load = VersionLoad(job_id=job.id, seconds=2.0, num_ready=1, completed=50, latency_s={"p95": 0.25})
    pool.control.kernels.take_load(Load(versions=(load,)))

    out = run(pool, "show", "digits-v2").out
    assert "digits, version 2" in out
    assert re.search(rf"Kernels\n.*\n{task.id} +serving", out)
    assert not re.search("virtual|training|Tasks", out)
    assert run(pool, "metrics", "digits-v2", "--name", "requests_per_s", "--csv").out.splitlines() == (
        ["step,requests_per_s", "1,25.0"]
    )


def test_a_folder_is_deployed_and_what_is_printed_asks_it(
    run: Run, shown: Played, gateway: Gateway, folder: Path
) -> None:
    done = run(shown, "deploy", str(folder), "--max", "3", "--release-delay", "5m", "--env", "A=b")
    assert (done.code, shown.endpoints.files["digits"]) == (0, ("serve.py",))
    first, predict, curl = done.out.splitlines()
    assert first == f"digits serves version 1 at {gateway.url}/v2/models/digits/infer, and over gRPC at 127.0.0.1:7313"
    assert predict == "  pliant predict digits --data @request.json"
    assert curl.startswith('  curl -H "Authorization: Bearer $PLIANT_TOKEN"')
    assert done.err.splitlines() == [
        "digits: version 1 is sent",
        "digits: version 1 is starting: its model is being loaded",
    ]
    view = json.loads(run(shown, "endpoints", "show", "digits", "--json").out)
    assert (view["kernel_max"], view["release_delay_s"], view["versions"][0]["env"]) == (3, 300.0, {"A": "b"})

    run(shown, "deploy", str(folder), "--no-wait")
    shown.endpoints.load("digits", METADATA)
    printed = run(shown, "deploy", str(folder)).out.splitlines()[1]
    assert "@request.json" in printed, "a new version has not said yet what it takes"


def test_the_example_of_a_model_that_says_what_it_takes_can_be_sent(
    run: Run, shown: Played, gateway: Gateway, folder: Path
) -> None:
    run(shown, "deploy", str(folder), "--no-wait")
    shown.endpoints.load("digits", METADATA)
    document = example_document(METADATA)
    assert document == {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.0, 0.0]}]}
    answer = json.loads(run(shown, "predict", "digits", "--data", json.dumps(document)).out)
    assert answer["outputs"][0]["data"] == [0.0, 0.0]


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"inputs": []},
        {"inputs": "x"},
        {"inputs": [3]},
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": ["-1"]}]},
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [3, 224, 224]}]},
    ],
)
def test_there_is_no_example_of_what_is_not_said_or_too_much(metadata: dict[str, object]) -> None:
    assert example_document(metadata) is None


def test_a_job_is_deployed_by_id_or_name_and_gives_the_endpoint_its_name(
    run: Run, shown: Played, gateway: Gateway
) -> None:
    for what in ("1", "job-1", "digits"):
        view = json.loads(run(shown, "deploy", what, "--json", "--min", "1").out)
        assert (view["name"], view["versions"][-1]["source"], view["kernel_min"]) == ("digits", "job-1", 1)
    assert json.loads(run(shown, "deploy", "1", "--name", "mine", "--json").out)["name"] == "mine"


def test_what_is_no_folder_and_no_job_is_said_to_be_neither(run: Run, shown: Played, folder: Path) -> None:
    done = run(shown, "deploy", "digitz")
    assert done.code == 3
    assert "neither a file nor a folder 'digitz'" in done.err
    assert "is 'digits' meant?" in done.err
    assert "--requirements" in run(shown, "deploy", "1", "--requirements", "r.txt").err
    nameless = folder.with_name("éé")
    nameless.mkdir()
    assert "--name: " in run(shown, "deploy", str(nameless)).err


def test_what_is_wrong_is_said_in_the_words_of_the_command(run: Run, shown: Played, folder: Path) -> None:
    done = run(shown, "deploy", str(folder), "--max", "0", "--priority", "99999")
    assert done.code == 2
    assert "--max" in done.err
    assert "--priority" in done.err
    assert "--memory" in run(shown, "deploy", str(folder), "--memory", "much").err
    clash = run(shown, "deploy", str(folder), "--min", "5", "--max", "2")
    assert (clash.code, "--min: 5 is above --max 2" in clash.err) == (2, True), clash.err


def test_a_version_that_fails_ends_the_command_with_1_and_says_what_goes_on(
    run: Run, shown: Played, gateway: Gateway, folder: Path
) -> None:
    run(shown, "deploy", str(folder))
    shown.endpoints.load_after_looks = None
    assert "is being loaded" in run(shown, "deploy", str(folder), "--no-wait").out
    shown.endpoints.fail("digits", "ImportError: no module 'x'")
    run(shown, "endpoints", "stop", "digits")
    run(shown, "endpoints", "start", "digits")
    shown.endpoints.fails_with = "ImportError: no module 'x'"
    done = run(shown, "deploy", str(folder))
    shown.endpoints.fails_with = ""
    assert (done.code, done.out) == (1, "")
    assert "version 3 failed: ImportError: no module 'x'; version 1 serves as before" in done.err


def test_endpoints_are_listed_with_what_they_do(run: Run, shown: Played, gateway: Gateway, folder: Path) -> None:
    assert "There are no endpoints yet; `pliant deploy WHAT` makes one." in run(shown, "endpoints").out
    run(shown, "deploy", str(folder), "--max", "4")
    serve(shown)
    run(shown, "deploy", str(folder), "--name", "empty")
    assert [line.split() for line in run(shown, "endpoints").out.splitlines()] == [
        ["ENDPOINT", "STATE", "VERSION", "KERNELS", "REQ/S", "P95", "WAITING", "OWNER", "QUEUE"],
        ["digits", "serving", "1", "1/1", "(4)", "25", "250", "ms", "4", "admin", "default"],
        ["empty", "idle", "1", "0/0", "(100)", "–", "–", "0", "admin", "default"],
    ]
    page = json.loads(run(shown, "endpoints", "--json").out)
    assert [one["name"] for one in page["endpoints"]] == ["digits", "empty"]


def test_an_endpoint_is_shown_with_versions_and_kernels(
    run: Run, shown: Played, gateway: Gateway, folder: Path
) -> None:
    run(shown, "deploy", str(folder), "--description", "Digits of mail", "--share", "*")
    serve(shown)
    out = run(shown, "endpoints", "show", "digits").out
    assert "127.0.0.1:7313" in out
    for text in ("Digits of mail", "serving", "everybody", "1 of 1 kernel", "p95 250 ms", "3 computed, 4 waiting"):
        assert text in out
    assert "90 answered, 2 refused; 3 in a batch" in out
    assert f"{gateway.url}/v2/models/digits/infer" in out
    assert re.search(r"job-1\.1 +ready +local +0 ", out)
    assert re.search(r"1 +serving +100% +python +serve\.py +digits +job-1", out)
    rows = run(shown, "endpoints", "versions", "digits").out.splitlines()
    assert rows[1].split()[:5] == ["1", "serving", "100%", "python", "serve.py"]
    assert json.loads(run(shown, "endpoints", "versions", "digits", "--json").out)[0]["number"] == 1


def test_an_endpoint_is_changed_stopped_started_rolled_back_and_removed(
    run: Run, shown: Played, gateway: Gateway, folder: Path
) -> None:
    run(shown, "deploy", str(folder))
    run(shown, "deploy", str(folder))
    done = run(shown, "endpoints", "set", "digits", "--max", "9", "--latency-objective", "2s", "--no-idempotent")
    assert "digits is changed; it is at revision" in done.out
    view = json.loads(run(shown, "endpoints", "show", "digits", "--json").out)
    assert (view["kernel_max"], view["latency_objective_s"], view["idempotent"]) == (9, 2.0, False)
    assert "nothing to change" in run(shown, "endpoints", "set", "digits").err
    assert run(shown, "endpoints", "rollback", "digits").out == "digits serves version 1\n"
    assert run(shown, "endpoints", "rollback", "digits", "2").out == "digits serves version 2\n"
    assert run(shown, "endpoints", "rollback", "digits", "7").code == 5
    assert "refuses requests" in run(shown, "endpoints", "stop", "digits").out
    assert "takes requests again" in run(shown, "endpoints", "start", "digits").out
    assert run(shown, "endpoints", "remove", "digits").out == "digits is removed\n"
    gone = run(shown, "endpoints", "show", "digits")
    assert (gone.code, "`pliant endpoints` lists those you may use" in gone.err) == (3, True), gone.err


def test_traffic_is_split_and_shown(run: Run, shown: Played, gateway: Gateway, folder: Path) -> None:
    for _ in range(2):
        run(shown, "deploy", str(folder))
    done = run(shown, "endpoints", "traffic", "digits", "1=90", "2=10%")
    assert done.out == "digits: version 1 takes 90 % and version 2 takes 10 % of the requests\n"
    rows = [line.split() for line in run(shown, "endpoints", "versions", "digits").out.splitlines()]
    assert [row[2] for row in rows[1:]] == ["10%", "90%"]
    shown.endpoints.exchange = "version 2 is to take 50 % of the requests from version 1: it waits for its first kernel"
    for words in (("traffic", "digits", "1=50", "2=50"), ("versions", "digits"), ("show", "digits")):
        assert shown.endpoints.exchange in " ".join(run(shown, "endpoints", *words).out.split())
    shown.endpoints.exchange = ""
    wrong = run(shown, "endpoints", "traffic", "digits", "1=50", "2=40", "3=20")
    assert "there is no version 3; there are 1, 2" in wrong.err
    assert "50 + 40 + 20 is 110 percent" in wrong.err
    assert "'2:90' is no share" in run(shown, "endpoints", "traffic", "digits", "2:90").err
    assert "100" in run(shown, "deploy", str(folder), "--traffic", "101").err


def test_the_limits_of_an_endpoint_are_given_changed_and_taken_away(
    run: Run, shown: Played, gateway: Gateway, folder: Path
) -> None:
    def limits() -> list[float | None]:
        view = json.loads(run(shown, "endpoints", "show", "digits", "--json").out)
        return [view[name] for name in ("max_rate", "max_concurrent", "max_request_s")]

    run(shown, "deploy", str(folder), "--max-rate", "0.5", "--max-concurrent", "16", "--max-request", "1m")
    assert limits() == [0.5, 16, 60.0]
    assert "0.5 a second, 16 at once, 60 s each" in run(shown, "endpoints", "show", "digits").out
    run(shown, "endpoints", "set", "digits", "--max-rate", "200", "--max-request", "off")
    assert limits() == [200.0, 16, None]
    run(shown, "deploy", str(folder), "--max-concurrent", "off")
    assert limits() == [200.0, None, None]
    assert "--max-rate: 'many' is no number; give one, such as 50, or off" in (
        run(shown, "endpoints", "set", "digits", "--max-rate", "many").err
    )
    assert "--max-concurrent: 0 is too small" in run(shown, "endpoints", "set", "digits", "--max-concurrent", "0").err


def test_logs_are_those_of_the_versions_job(run: Run, shown: Played, gateway: Gateway, folder: Path) -> None:
    run(shown, "deploy", str(folder))
    done = run(shown, "endpoints", "logs", "digits", "--stream", "stdout", "--tail", "1")
    assert done.out == "[job-1.1] epoch 2\n[job-1.2] two\n"
    missing = run(shown, "endpoints", "logs", "digits", "--version", "9")
    assert (missing.code, "digits has no version 9; it has 1" in missing.err) == (3, True)


def test_a_model_is_asked_with_text_a_file_or_stdin(
    run: Run, shown: Played, gateway: Gateway, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(shown, "deploy", str(folder))
    text = '{"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [21]}]}'
    file = folder / "x.json"
    file.write_text(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    for data in (text, f"@{file}", "-"):
        assert json.loads(run(shown, "predict", "digits", "--data", data).out)["outputs"][0]["data"] == [42]
    assert run(shown, "predict", "digits", "--raw", "--data", '{"é": [1]}').out == '{"é": [1]}\n'
    run(shown, "predict", "digits", "--data", text, "--version", "1", "--timeout", "10s")
    assert gateway.paths[-2:] == ["/dlim/v1/inference/digits", "/v2/models/digits/versions/1/infer"]


def test_the_parts_of_an_answer_are_lines(run: Run, shown: Played, gateway: Gateway, folder: Path) -> None:
    run(shown, "deploy", str(folder))
    done = run(shown, "predict", "digits", "--stream", "--raw", "--data", '[1, "\x9b2J", {"y": []}]')
    assert (done.code, done.out) == (0, '1\n"\\u009b2J"\n{"y": []}\n')
    failed = run(shown, "predict", "digits", "--stream", "--raw", "--data", '[1, {"error": "too hot"}]')
    assert (failed.out, "too hot" in failed.err) == ("1\n", True)
    assert failed.code != 0


def test_a_token_for_one_endpoint_asks_it_and_nothing_else(
    run: Run, shown: Played, gateway: Gateway, folder: Path
) -> None:
    assert (
        "there is no endpoint 'digits'"
        in run(shown, "tokens", "add", "x", "--scope", "infer", "--endpoint", "digits").err
    )
    for name in ("digits", "mnist"):
        run(shown, "deploy", str(folder), "--name", name)
    shown.people.accounts.first_administrator()
    wide = run(shown, "tokens", "add", "shop", "--endpoint", "digits")
    assert (wide.code, "the scope 'infer' and no other" in wide.err) == (2, True)
    limits = ("--endpoint", "digits", "--max-rate", "50", "--max-concurrent", "8")
    made = json.loads(run(shown, "tokens", "add", "shop", "--scope", "infer", *limits, "--json").out)
    (row,) = [line for line in run(shown, "tokens").out.splitlines() if made["info"]["id"] in line]
    assert "50/s, 8 at once" in row
    gateway.token = made["token"]
    document = {"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [21]}]}
    asked = ("--data", json.dumps(document))
    answer = json.loads(run(shown, "--token", made["token"], "predict", "digits", *asked).out)
    assert answer["outputs"][0]["data"] == [42]
    assert run(shown, "--token", made["token"], "predict", "mnist", *asked).code == 3
    assert run(shown, "--token", made["token"], "endpoints", "show", "digits").code == 6
    run(shown, "tokens", "revoke", made["info"]["id"])


def test_a_request_that_cannot_be_sent_or_is_refused_is_an_error(
    run: Run, shown: Played, gateway: Gateway, folder: Path
) -> None:
    run(shown, "deploy", str(folder))
    assert "--data: it is no JSON" in run(shown, "predict", "digits", "--data", "{").err
    missing = run(shown, "predict", "digits", "--data", "@nowhere.json")
    assert (missing.code, "'nowhere.json' cannot be read" in missing.err) == (2, True)
    gateway.refusal = (429, "1000 requests wait already")
    done = run(shown, "predict", "digits", "--data", "{}")
    assert (done.code, "1000 requests wait already" in done.err) == (6, True)
    gateway.refusal = (503, "digits is stopped")
    assert run(shown, "predict", "digits", "--data", "{}").code == 4
    assert run(shown, "predict", "digitz", "--data", "{}").code == 3


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("digits", "digits"),
        ("my model.tar.gz", "my-model"),
        ("train.py", "train"),
        ("..hidden", "hidden"),
        ("a/b?c", "a-b-c"),
        ("x" * 80, "x" * 50),
        ("éé", ""),
    ],
)
def test_a_name_is_made_fit(text: str, name: str) -> None:
    assert fit_name(text) == name


def test_every_field_of_the_nouns_has_an_option() -> None:
    assert [name for name, option in OF_DEPLOYMENT.items() if not option.help] == []
    assert {*OF_ENDPOINT} < {*OF_DEPLOYMENT}


def test_the_page_has_every_setting() -> None:
    (table,) = re.findall(r"<!-- .*settings_table -->\n\n(.*?)\n\n<!-- -->", PAGE.read_text(), re.DOTALL)
    assert table.splitlines() == [*rows()], "run: python -m pliant.cli.endpoints.settings_table"
