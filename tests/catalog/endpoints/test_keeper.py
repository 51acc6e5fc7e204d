"""Endpoints over jobs that are played: deployed, exchanged, stopped, removed, and mended after whatever went wrong."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.catalog.endpoints.played_pool import status

from pliant.catalog.endpoints.archives import WEIGHTS, ModelArchives
from pliant.catalog.endpoints.keeper import EndpointKeeper
from pliant.catalog.endpoints.ports import EndpointPorts
from pliant.catalog.endpoints.use_cases import Deployment, EndpointCatalog
from pliant.core.access import Principal, Role, VisibleJobs
from pliant.core.endpoint import Endpoint, VersionState, VersionStatus
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.lifecycle import JobState
from pliant.core.serving import Serve
from pliant.core.serving_profile import KernelBounds, ServingProfile
from pliant.files.untrusted.path import UntrustedPath
from pliant.sim.registry import MemoryRegistry

ANN = Principal(name="ann", role=Role.USER)
BEN = Principal(name="ben", role=Role.USER)
STARTING, SERVING, RETIRED, FAILED = VersionState


class PlayedJobs:
    """Jobs that do nothing until a test says so."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: dict[JobId, VersionStatus] = {}
        self.specs: dict[JobId, JobSpec] = {}
        self.ended: dict[JobId, Job] = {}
        self.adjusted: dict[JobId, tuple[ServingProfile, KernelBounds, int, str]] = {}
        self.refusal: Exception | None = None

    def start(self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> JobId:
        if self.refusal is not None:
            raise self.refusal
        assert tarfile.is_tarfile(archive)
        job_id = JobId(f"job-{len(self.specs) + 1}")
        self.specs[job_id] = spec
        self.running[job_id] = VersionStatus(
            job_id=job_id,
            state=JobState.PENDING,
            token=f"token of {job_id}",
            has_served=False,
            wanted=1,
            demand="",
            why="",
            kernels=(),
            load=None,
            metadata={},
        )
        return job_id

    def serve(self, number: int, ready: int = 0, num_failures: int = 0, *, has_answered: bool = False) -> None:
        job_id = JobId(f"job-{number}")
        self.running[job_id] = replace(
            self.running[job_id],
            has_served=True,
            metadata={"platform": "played"},
            kernels=status(job_id, ready=ready).kernels,
            num_failures=num_failures,
            has_answered=has_answered,
        )

    def end(self, number: int, state: JobState, reason: str = "") -> None:
        job_id = JobId(f"job-{number}")
        del self.running[job_id]
        self.ended[job_id] = Job(
            id=job_id,
            spec=self.specs[job_id],
            owner="ann",
            state=state,
            priority=1,
            min_tasks=1,
            max_tasks=1,
            submitted_at=0.0,
            reason=reason,
        )

    def stop(self, job_id: JobId, who: str) -> None:
        if job_id in self.running:
            self.end(int(job_id.removeprefix("job-")), JobState.STOPPED)

    def adjust(self, job_id: JobId, profile: ServingProfile, bounds: KernelBounds, priority: int, queue: str) -> None:
        self.adjusted[job_id] = (profile, bounds, priority, queue)

    def statuses(self) -> Mapping[JobId, VersionStatus]:
        return dict(self.running)

    def endpoints(self) -> Mapping[JobId, str]:
        parts = {job_id: self.specs[job_id].endpoint for job_id in self.running}
        return {job_id: part.name for job_id, part in parts.items() if part is not None}

    def find(self, job_id: JobId) -> Job | None:
        return self.ended.get(job_id)

    def require_visible(self, job_id: str, caller: Principal) -> Job:
        job = self.ended.get(JobId(job_id))
        if job is None:
            raise NotFound(f"no job is named {job_id!r}")
        return job

    @contextmanager
    def code(self, job: Job) -> Iterator[Path]:
        yield packed(self.home / "trained.tar.gz", {"train.py": "import pliant\n"})

    def weights(self, job_id: JobId) -> UntrustedPath:
        return UntrustedPath(self.home, "model.pt")


def packed(path: Path, files: Mapping[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


class Endpoints:
    """The use cases with their keeper, and the newest picture that a gateway was shown."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.jobs = PlayedJobs(home)
        self.picture = Serve(endpoints=())
        self.num_needed = 0
        archives = ModelArchives(home / "endpoints")
        ports = EndpointPorts(
            jobs=self.jobs,
            unknown_users=lambda names: [name for name in names if name not in ("ann", "ben")],
            now=lambda: 10.0,
            changed=lambda: None,
        )
        self.catalog = EndpointCatalog(registry=MemoryRegistry(), archives=archives, ports=ports)
        self.keeper = EndpointKeeper(
            catalog=self.catalog, archives=archives, ports=ports, show=self.show, need_gateway=self.need
        )

    def show(self, picture: Serve) -> None:
        self.picture = picture

    def need(self) -> None:
        self.num_needed += 1

    def look(self) -> None:
        for _ in range(4):
            self.keeper.look()

    def deploy(
        self,
        text: str = "class Model: ...\n",
        caller: Principal = ANN,
        traffic: int | None = None,
        **settings: object,
    ) -> Endpoint:
        archive = packed(self.home / "sent.tar.gz", {"serve.py": text})
        asked = Deployment(name="digits", settings=settings, version={}, source="folder", traffic=traffic)
        found = self.catalog.deploy(caller, asked, archive, None).noun
        self.look()
        return found

    def endpoint(self) -> Endpoint:
        return self.catalog.get(ANN, "digits").noun

    def states(self) -> list[VersionState]:
        return [one.state for one in self.endpoint().versions]


@pytest.fixture
def world(tmp_path: Path) -> Endpoints:
    return Endpoints(tmp_path)


def test_the_first_version_takes_requests_while_it_starts_and_serves_when_it_is_ready(world: Endpoints) -> None:
    world.deploy(kernel_max=4)

    (shown,) = world.picture.endpoints
    assert [(one.number, one.weight, one.token) for one in shown.versions] == [(1, 1, "token of job-1")]
    assert (shown.profile.kernel_max, world.num_needed > 0, world.states()) == (4, True, [STARTING])

    world.jobs.serve(1)
    world.look()

    assert (world.states(), world.endpoint().current) == ([SERVING], 1)
    assert world.picture.endpoints[0].versions[0].metadata == {"platform": "played"}


def test_a_second_version_takes_over_only_when_it_is_ready(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1)
    world.look()

    world.deploy("class Model: pass\n")
    before = [(one.number, one.weight) for one in world.picture.endpoints[0].versions]
    world.jobs.serve(2)
    world.look()

    assert before == [(1, 100), (2, 0)]
    assert [(one.number, one.weight) for one in world.picture.endpoints[0].versions] == [(2, 100)]
    assert (world.states(), set(world.jobs.running)) == ([RETIRED, SERVING], {JobId("job-2")})


def test_a_version_that_fails_leaves_the_one_before_it_where_it_is(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1)
    world.deploy()
    world.jobs.end(2, JobState.FAILED, "its model did not load")
    world.look()

    assert (world.states(), world.endpoint().current) == ([SERVING, FAILED], 1)
    assert [(one.number, one.weight) for one in world.picture.endpoints[0].versions] == [(1, 100)]


def test_the_only_version_that_fails_is_said_to_the_gateway_and_can_be_tried_again(world: Endpoints) -> None:
    world.deploy()
    world.jobs.end(1, JobState.FAILED, "no module named foo\nTraceback …")
    world.look()

    assert world.picture.endpoints[0].why_not == "version 1 of digits has failed: no module named foo"

    world.catalog.start(ANN, "digits")
    world.look()

    assert (world.states(), list(world.jobs.running)) == ([STARTING], [JobId("job-2")])


def test_going_back_brings_the_version_before_with_its_own_archive(world: Endpoints) -> None:
    for number in (1, 2):
        world.deploy(f"NUMBER = {number}\n")
        world.jobs.serve(number)
        world.look()
    world.keeper.sweep()

    world.catalog.roll_back(ANN, "digits")
    world.look()
    world.jobs.serve(3)
    world.look()

    assert (world.endpoint().current, world.states()) == (1, [SERVING, RETIRED])
    with pytest.raises(Conflict, match="version 1 of digits serves already"):
        world.catalog.roll_back(ANN, "digits", 1)
    with pytest.raises(Conflict, match="has no version 7; there are: 1, 2"):
        world.catalog.roll_back(ANN, "digits", 7)


def weights(world: Endpoints) -> dict[int, int]:
    return {one.number: one.weight for one in world.picture.endpoints[0].versions}


def test_a_canary_takes_its_part_beside_the_version_that_serves_until_it_is_promoted_or_taken_back(
    world: Endpoints,
) -> None:
    world.deploy(kernel_min=2)
    world.jobs.serve(1, ready=2)
    world.look()
    world.deploy(traffic=10)
    loading = weights(world)
    world.jobs.serve(2, ready=1)
    world.look()

    assert (loading, weights(world)) == ({1: 100, 2: 0}, {1: 90, 2: 10})
    assert (world.states(), world.endpoint().current) == ([SERVING, SERVING], 1)
    assert world.jobs.specs[JobId("job-2")].min_tasks == 1, "it loads with one kernel, whatever the endpoint's minimum"
    assert {job: one[1].promised for job, one in world.jobs.adjusted.items()} == {"job-1": 2, "job-2": 0}

    world.catalog.split(ANN, "digits", {2: 100, 1: 0})
    world.look()
    assert (weights(world), world.endpoint().current) == ({1: 50, 2: 50}, 1), "it has one of two kernels"
    world.catalog.roll_back(ANN, "digits")
    world.look()
    assert (weights(world), world.states(), set(world.jobs.running)) == ({1: 100}, [SERVING, RETIRED], {"job-1"})


def test_another_deployment_takes_the_place_of_a_canary_when_it_has_loaded(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1)
    world.deploy(traffic=10)
    world.jobs.serve(2, ready=1)
    world.look()

    world.deploy(traffic=20)
    loading = weights(world)
    world.jobs.serve(3, ready=1)
    world.look()

    assert (loading, weights(world)) == ({1: 90, 2: 10, 3: 0}, {1: 80, 3: 20})
    assert world.states() == [SERVING, RETIRED, SERVING]

    world.deploy()
    world.jobs.end(4, JobState.FAILED, "its model did not load")
    world.look()
    assert (weights(world), world.states()) == ({1: 80, 3: 20}, [SERVING, RETIRED, SERVING, FAILED])

    world.jobs.end(3, JobState.FAILED, "the disk")
    world.look()
    assert weights(world) == {1: 100}, "the share of a canary that fails stays with the others"


def test_the_share_of_a_version_whose_kernels_keep_ending_is_the_others_while_it_has_none(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1, ready=1)
    world.deploy(traffic=10)
    world.jobs.serve(2, ready=1)
    world.look()
    world.jobs.serve(2, ready=0, num_failures=1)
    world.look()
    lost = weights(world)
    world.jobs.serve(2, ready=1, num_failures=1)
    world.look()

    assert (lost, weights(world)) == ({1: 90, 2: 0}, {1: 90, 2: 10})


def test_a_version_whose_kernels_answer_nothing_does_not_take_over(world: Endpoints) -> None:
    world.deploy(kernel_min=2)
    world.jobs.serve(1, ready=2)
    world.look()
    world.deploy()
    world.jobs.serve(2, ready=1, num_failures=2)
    world.look()
    taking = weights(world)
    world.jobs.serve(2, ready=0, num_failures=3)
    world.look()

    assert taking == {1: 50, 2: 50}
    assert (weights(world), world.states(), world.endpoint().exchange) == ({1: 100}, [SERVING, FAILED], None)
    assert world.endpoint().versions[1].reason == "its kernels end before they answer, 3 in a row"
    assert set(world.jobs.running) == {"job-1"}


def test_the_version_before_takes_over_again_from_the_newest_if_that_has_never_answered(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1, ready=1)
    world.deploy()
    world.jobs.serve(2, ready=1)
    world.look()
    taken = (weights(world), world.states())
    world.jobs.serve(2, ready=0, num_failures=3)
    world.look()

    assert taken == ({2: 100}, [RETIRED, SERVING])
    assert (weights(world), world.states(), set(world.jobs.running)) == ({1: 1}, [STARTING, FAILED], {"job-3"})

    world.jobs.serve(3, ready=0, num_failures=5)
    world.look()
    assert (world.states(), world.endpoint().current) == ([SERVING, FAILED], 1), "there is no other to go back to"


def test_a_version_that_has_answered_keeps_its_traffic_whatever_becomes_of_its_kernels(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1, ready=1)
    world.deploy()
    world.jobs.serve(2, ready=1)
    world.look()
    world.jobs.serve(2, ready=0, num_failures=9, has_answered=True)
    world.look()

    assert (world.states(), set(world.jobs.running)) == ([RETIRED, SERVING], {"job-2"})


def test_a_split_is_refused_with_all_that_is_wrong(world: Endpoints) -> None:
    world.deploy(kernel_max=1)
    world.jobs.serve(1)
    world.look()

    with pytest.raises(InvalidInput, match=r"there is no version 7; there are 1(.|\n)*50 \+ 40 is 90 percent"):
        world.catalog.split(ANN, "digits", {1: 50, 7: 40})
    with pytest.raises(InvalidInput, match="kernel_max: 1 is less than the 2 versions that have traffic"):
        world.deploy(traffic=10)
    world.catalog.change(ANN, "digits", {"shared_with": ("ben",)})
    with pytest.raises(Forbidden):
        world.catalog.split(BEN, "digits", {1: 100})
    assert len(world.endpoint().versions) == 1


def test_a_stopped_endpoint_holds_nothing_and_starts_again_as_it_was(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1)
    world.look()

    world.catalog.stop(ANN, "digits")
    world.look()
    stopped = world.picture.endpoints[0]
    world.catalog.start(ANN, "digits")
    world.look()

    assert (stopped.started, stopped.versions, stopped.why_not[:17]) == (False, (), "digits is stopped")
    assert (list(world.jobs.running), world.endpoint().current) == ([JobId("job-2")], 1)


def test_a_change_reaches_what_runs_without_a_stop(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1)

    world.catalog.change(ANN, "digits", {"kernel_max": 3, "priority": 9000, "queue": "fast"})
    world.look()

    profile, bounds, priority, queue = world.jobs.adjusted[JobId("job-1")]
    assert (profile.kernel_max, bounds.at_most, priority, queue) == (3, 3, 9000, "fast")
    assert world.picture.endpoints[0].profile.kernel_max == 3


def test_what_is_removed_runs_no_more_and_a_job_without_an_endpoint_is_ended(world: Endpoints) -> None:
    world.deploy()
    world.catalog.remove(ANN, "digits")
    world.look()

    assert (world.jobs.running, world.picture) == ({}, Serve(endpoints=()))
    assert list((world.home / "endpoints").iterdir()) == []
    with pytest.raises(NotFound, match="there is no endpoint 'digits'"):
        world.catalog.get(ANN, "digits")


def test_a_version_that_cannot_be_started_again_has_failed_and_says_why(world: Endpoints) -> None:
    world.deploy()
    world.jobs.serve(1)
    world.look()
    world.jobs.end(1, JobState.STOPPED)
    world.jobs.refusal = InvalidInput.at("dataset", "there is no data set 'mnist' here")
    world.look()

    assert world.states() == [FAILED]
    assert (
        "could not be started again: dataset: there is no data set 'mnist' here" in world.endpoint().versions[0].reason
    )


def test_a_trained_job_is_deployed_with_its_code_and_weights(world: Endpoints) -> None:
    world.deploy()
    world.jobs.end(1, JobState.COMPLETED)
    world.jobs.ended[JobId("job-1")] = replace(
        world.jobs.ended[JobId("job-1")],
        spec=JobSpec(name="train", script="train.py", args=("--lr", "1"), virtual_workers=8, dataset="mnist"),
    )
    asked = Deployment(name="trained", settings={}, version={}, job="job-1")
    with pytest.raises(NotFound, match="job-1 has saved no model yet"):
        world.catalog.deploy(ANN, asked, None, None)
    (world.home / "model.pt").write_bytes(b"weights")

    made = world.catalog.deploy(ANN, asked, None, None).noun.versions[0]

    assert (made.runner, made.file, made.args, made.weights, made.dataset, made.source) == (
        ("job", "train.py", ("--lr", "1"), WEIGHTS, "mnist", "job-1")
    )
    with tarfile.open(world.home / "endpoints" / f"{made.checksum}.tar.gz") as archive:
        assert sorted(archive.getnames()) == [WEIGHTS, "train.py"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"kernel_min": 5, "kernel_max": 2}}, "kernel_min: 5 is above kernel_max 2"),
        ({"settings": {"shared_with": ("nobody",)}}, "no user is named 'nobody'"),
        ({"file": "../serve.py"}, "file: '../serve.py' is not in the folder; it holds serve.py"),
        ({"file": "gone.py"}, "file: 'gone.py' is not in the folder"),
        ({"job": "job-3"}, "'job-3' and an archive were sent"),
    ],
)
def test_what_cannot_be_deployed_is_refused_and_nothing_is_kept(
    world: Endpoints, changes: dict[str, object], message: str
) -> None:
    archive = packed(world.home / "sent.tar.gz", {"serve.py": ""})
    asked = replace(Deployment(name="digits", settings={}, version={}), **changes)  # type: ignore[arg-type]

    with pytest.raises(InvalidInput, match=message.replace("(", r"\(")):
        world.catalog.deploy(ANN, asked, archive, None)

    assert (world.jobs.specs, world.catalog.all()) == ({}, ())


def test_a_folder_without_anything_that_can_be_run_says_what_is_looked_for(world: Endpoints) -> None:
    archive = packed(world.home / "sent.tar.gz", {"notes.txt": ""})

    with pytest.raises(InvalidInput, match=r"none of kernel\.py, serve\.py, .* is in the folder; it holds notes\.txt"):
        world.catalog.deploy(ANN, Deployment(name="digits", settings={}, version={}), archive, None)


def test_the_only_file_of_a_kind_that_can_be_run_is_what_is_meant(world: Endpoints) -> None:
    archive = packed(world.home / "one.tar.gz", {"digits.onnx": "", "notes.txt": ""})
    made = world.catalog.deploy(ANN, Deployment(name="digits", settings={}, version={}), archive, None)
    assert (made.noun.versions[-1].file, made.noun.versions[-1].runner) == ("digits.onnx", "onnx")

    archive = packed(world.home / "two.tar.gz", {"digits.onnx": "", "letters.onnx": ""})
    with pytest.raises(InvalidInput, match=r"it holds digits\.onnx, letters\.onnx; name what is run"):
        world.catalog.deploy(ANN, Deployment(name="digits", settings={}, version={}), archive, None)


def test_others_see_what_is_shared_and_change_nothing(world: Endpoints) -> None:
    world.deploy()
    with pytest.raises(NotFound):
        world.catalog.get(BEN, "digits")
    world.catalog.change(ANN, "digits", {"shared_with": ("ben",)})

    assert world.catalog.get(BEN, "digits").noun.owner == "ann"
    with pytest.raises(Forbidden):
        world.catalog.stop(BEN, "digits")
    with pytest.raises(Forbidden):
        world.deploy(caller=BEN)
    with pytest.raises(Stale):
        world.catalog.change(ANN, "digits", {"kernel_max": 2}, revision=1)
