"""What can be done in the console: on which page, by whom, and what the page then asks the server for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tests.browser.belongings import PEOPLE, Belongings

EVERYBODY: Final = frozenset(PEOPLE)
USERS: Final = EVERYBODY - {"vera"}
"""Who may make things of their own."""
SEERS: Final = EVERYBODY - {"eve"}
"""Who sees Ada's things."""
SHARERS: Final = SEERS & USERS
"""Who may use Ada's things for their own."""
OWNERS: Final = SHARERS - {"bob"}
"""Who may change Ada's things."""
ADA: Final = frozenset({"ada"})
OPERATORS: Final = frozenset({"olga", "root"})
ADMINS: Final = frozenset({"root"})
DESCRIBED: Final = '{"description": "by somebody else"}'


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a page offers to some people."""

    name: str
    """Of the button, entry, link or field, as it is read out."""
    people: frozenset[str]
    """Who finds it."""
    requests: tuple[str, ...] = ()
    """What it asks the server for, as `METHOD /path`, and a body if one is looked at before whose the thing is.
    Everybody else is refused that."""


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """A page, and all on it that not everybody finds."""

    path: str
    seen_by: frozenset[str]
    actions: tuple[Action, ...] = ()

    def names_for(self, name: str) -> list[str]:
        """Return what somebody finds on it."""
        return [action.name for action in self.actions if name in action.people & self.seen_by]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(action.name for action in self.actions)


def on(path: str, seen_by: frozenset[str], *actions: Action | Iterable[Action]) -> ConsolePage:
    """Return a page; actions may come in groups."""
    flat: list[Action] = []
    for action in actions:
        flat.extend([action] if isinstance(action, Action) else action)
    return ConsolePage(path, seen_by, tuple(flat))


def fields(people: frozenset[str], *names: str) -> list[Action]:
    """Return fields of a form; its button says what it asks for."""
    return [Action(name, people) for name in names]


def pages_of(things: Belongings) -> tuple[ConsolePage, ...]:
    """Return every page with the things on this server."""
    return (*_job_pages(things), *_catalog_pages(things), *_endpoint_pages(), *_search_pages(), *_pool_pages(things))


def requests_of(things: Belongings, name: str, *, may: bool) -> list[str]:
    """Return the requests of all pages that somebody may make, or may not."""
    unseen = Action("", OWNERS, (f"DELETE /v1/uploads/{things.upload}",))  # only Ada's page lists her uploads
    actions = [unseen, *(action for page in pages_of(things) for action in page.actions)]
    return sorted({request for one in actions if (name in one.people) is may for request in one.requests})


def _job_pages(things: Belongings) -> Iterable[ConsolePage]:
    running, completed = f"/v1/jobs/{things.running}", f"/v1/jobs/{things.completed}"
    again = Action("Submit again", SHARERS, (f"POST {running}/rerun",))
    share = Action("Share…", OWNERS, (f"GET {running}/shares", f"PUT {running}/shares"))
    head = [again, share, Action("Stop…", OWNERS, (f"POST {running}/stop",))]
    over = [
        again,
        share,
        Action("Deploy…", SHARERS),
        Action("Delete…", OWNERS, (f"DELETE {completed}",)),
    ]
    page = f"/jobs/{things.running}"
    yield on("/", EVERYBODY)
    yield on(
        "/jobs",
        EVERYBODY,
        Action("Select all that are shown", OWNERS, ()),
        *fields(OWNERS, f"Select {things.running}", f"Select {things.completed}"),
    )
    change = Action("Apply", OWNERS, (f"PATCH {running}", f"POST {running}/preview"))
    yield on(page, SEERS, head, change, fields(OWNERS, "Priority", "Tasks at least", "Tasks at most", "Queue", "Tags"))
    yield on(f"{page}/workers", SEERS, head, Action("Show stacks", OWNERS, (f"POST {running}/stacks",)))
    for tab in ("metrics", "logs", "events", "config", "results"):
        yield on(f"{page}/{tab}", SEERS, head)
    yield on(f"/jobs/{things.completed}", SEERS, over)
    yield on(f"/jobs/compare?ids={things.running},{things.completed}", EVERYBODY)
    submit = Action("Submit", USERS, ("POST /v1/jobs", "POST /v1/jobs/preview", "POST /v1/arrays"))
    yield on("/submit", USERS, submit, Action("Maximum", USERS))


def _catalog_pages(things: Belongings) -> Iterable[ConsolePage]:
    yield on(
        "/datasets",
        EVERYBODY,
        Action("New data set", USERS, ("POST /v1/datasets", "POST /v1/uploads", "GET /v1/uploads")),
        Action("Give up", ADA),
    )
    yield on("/datasets/-new", USERS, fields(USERS, "Create", "Choose a folder", "The server's disk"))
    use = Action("Submit a job with it", SHARERS)
    data = "/v1/datasets/flowers"
    share = fields(OWNERS, "Everybody who can log on", "People")
    yield on(
        "/datasets/flowers",
        SEERS,
        use,
        share,
        Action("Delete…", OWNERS, (f"DELETE {data}",)),
        Action("Edit", OWNERS, (f"PATCH {data} {DESCRIBED}",)),
        Action("Save", OWNERS),
    )
    yield on("/datasets/flowers/preview", SEERS, use, Action("Delete…", OWNERS))
    stop = Action("Stop the import…", OWNERS, ("POST /v1/datasets/coming/stop",))
    yield on("/datasets/coming", SEERS, share, stop, fields(OWNERS, "Delete…", "Edit", "Save"))
    yield on("/environments", EVERYBODY, Action("New environment", USERS, ("POST /v1/environments",)))
    yield on("/environments/-new", USERS, fields(USERS, "Create", "Choose a file", "Virtual environment"))
    place = "/v1/environments/torch"
    build = [
        use,
        Action("Build again…", OWNERS, (f"POST {place}/rebuild",)),
        Action("Delete…", OWNERS, (f"DELETE {place}",)),
    ]
    yield on(
        "/environments/torch",
        SEERS,
        build,
        share,
        Action("Save", OWNERS, (f'PUT {place}/shares {{"shared_with": []}}',)),
    )
    yield on("/environments/torch/log", SEERS, build)
    yield from _model_pages()


def _model_pages() -> Iterable[ConsolePage]:
    add = Action("Add template", USERS, ("POST /v1/templates",))
    new = Action("New model", USERS, ("POST /v1/models",))
    yield on("/models", EVERYBODY, add, new, Action("Train digits", SHARERS, ("POST /v1/models/digits/trainings {}",)))
    yield on("/models?train=digits", EVERYBODY, add, new, Action("Train digits", SHARERS))
    yield on("/models/templates", EVERYBODY, add)
    yield on("/models/trainings", EVERYBODY)
    yield on("/models/weights", EVERYBODY)
    template, model = "/v1/templates/images", "/v1/models/digits"
    yield on(
        "/models/templates/images",
        SEERS,
        Action("Replace…", OWNERS, (f'PUT {template} {{"name": "images"}}',)),
        Action("Remove…", OWNERS, (f"DELETE {template}",)),
        Action("New model", SHARERS),
    )
    changes = [
        Action("Edit…", OWNERS, (f"PATCH {model} {DESCRIBED}",)),
        Action("Remove…", OWNERS, (f"DELETE {model}",)),
        Action("Train…", SHARERS),
    ]
    yield on("/models/digits", SEERS, changes)
    yield on("/models/digits/trainings", SEERS, changes)
    first, second = f"{model}/trainings/first", f"{model}/trainings/second"
    stop = Action("Stop…", OWNERS, (f"POST {first}/stop",))
    again = Action("Train again…", SHARERS)
    course = fields(OWNERS, "Logarithmic", "steps", "epochs", "time")  # that of its job, which is shared with nobody
    yield on("/models/digits/trainings/first", SEERS, again, stop, course)
    forget = Action("Forget…", OWNERS, (f"DELETE {second}",))
    yield on("/models/digits/trainings/second", SEERS, again, forget, course, Action("Deploy…", OWNERS))


def _endpoint_pages() -> Iterable[ConsolePage]:
    place = "/v1/endpoints/digits"
    version = Action("New version", OWNERS, (f'POST {place}/versions {{"job": "job-1"}}',))
    menu = [
        Action("More actions", OWNERS),
        Action("Share…", OWNERS, (f"PATCH {place} {DESCRIBED}",)),
        Action("Remove…", OWNERS, (f"DELETE {place}",)),
    ]
    head = [version, Action("Stop…", OWNERS, (f"POST {place}/stop",)), *menu]
    yield on("/endpoints", EVERYBODY, Action("Deploy a model", USERS))
    yield on("/endpoints/digits", SEERS, head)
    yield on(
        "/endpoints/digits/versions",
        SEERS,
        head,
        Action("Roll back", OWNERS, (f"POST {place}/rollback {{}}",)),
        Action("Give version 1 all traffic", OWNERS),
        Action("Apply", OWNERS, (f'POST {place}/traffic {{"traffic": {{"1": 100}}}}',)),
        fields(OWNERS, "Version that tries", "Percent for version 1"),
    )
    yield on("/endpoints/digits/profile", SEERS, head, Action("Apply changes", OWNERS), Action("Undo", OWNERS))
    yield on("/endpoints/digits/test", SEERS, head, Action("Ask", SEERS, (f"POST {place}/predict",)))
    yield on("/endpoints/digits/logs", SEERS, head)
    yield on("/endpoints/asleep", SEERS, version, menu, Action("Start", OWNERS, ("POST /v1/endpoints/asleep/start",)))


def _search_pages() -> Iterable[ConsolePage]:
    place = "/v1/searches/lr-search"
    menu = [
        Action("More actions", OWNERS),
        Action("Change limits…", OWNERS, (f'PATCH {place} {{"max_trials": 9}}',)),
        Action("Try values…", OWNERS, (f'POST {place}/trials {{"trials": [{{"lr": 0.01}}]}}',)),
        Action("Share…", OWNERS),
        Action("Remove…", OWNERS, (f"DELETE {place}",)),
    ]
    stop = Action("Stop", OWNERS, (f"POST {place}/stop",))
    yield on("/searches", EVERYBODY, Action("New search", USERS, ("POST /v1/searches",)))
    yield on("/searches/new", USERS, fields(USERS, "Begin", "Choose a folder", "Metric *"))
    for tab in ("", "/trials", "/plots"):
        yield on(f"/searches/lr-search{tab}", SEERS, stop, menu)
    yield on("/searches/over", SEERS, menu, Action("Resume", OWNERS, ("POST /v1/searches/over/resume",)))


def _pool_pages(things: Belongings) -> Iterable[ConsolePage]:
    new_group = Action("New group", OPERATORS, ("POST /v1/resource-groups", "POST /v1/resource-groups/preview"))
    new_queue = Action("New queue", OPERATORS, ("POST /v1/queues",))
    queue, group = "/v1/queues/night", "/v1/resource-groups/half"
    for dialog in ("", "?new=queue", "?new=group"):
        yield on(f"/queues{dialog}", EVERYBODY, new_group, new_queue)
    yield on(
        "/queues/night",
        EVERYBODY,
        Action("Edit…", OPERATORS, (f"PATCH {queue}", f"POST {queue}/preview")),
        Action("Delete…", OPERATORS, (f"DELETE {queue}",)),
        Action("Copy", USERS),
    )
    yield on(
        "/queues/groups/half",
        EVERYBODY,
        Action("Edit…", OPERATORS, (f"PATCH {group}",)),
        Action("Delete…", OPERATORS, (f"DELETE {group}",)),
        new_queue,
    )
    yield on(
        "/machines",
        EVERYBODY,
        Action("Drain…", OPERATORS, ("PATCH /v1/machines/local",)),
        Action("Exclude…", OPERATORS, ("POST /v1/machines/local/exclude",)),
        Action("Labels…", OPERATORS, ("PUT /v1/machines/local/labels",)),
        fields(OPERATORS, *(f"Exclude slot {slot} of local…" for slot in range(4))),
    )
    yield on("/usage", EVERYBODY)
    yield on("/events", EVERYBODY)
    revoke = (f"DELETE /v1/tokens/{things.token}",)
    yield on("/me", EVERYBODY, Action("Revoke: nightly", ADA))
    user = "/v1/users/ada"
    yield on("/people", ADMINS, Action("Add a user", ADMINS, ("GET /v1/users", "POST /v1/users")))
    yield on(
        "/people/ada",
        ADMINS,
        Action("Role", ADMINS, (f"PATCH {user}",)),
        fields(ADMINS, "Password…", "Disable…"),
        Action("Remove…", ADMINS, (f"DELETE {user}",)),
        Action("Revoke: nightly", ADMINS | ADA, revoke),
        Action("End", ADMINS, (f"GET {user}/sessions", f"DELETE {user}/sessions/{things.session}")),
    )
    yield on("/audit", ADMINS, Action("What was done", ADMINS, ("GET /v1/audit",)))
    yield on(
        "/settings",
        OPERATORS,
        fields(OPERATORS, "What would go now", "Logs: days after the end"),
        Action("Clean up now…", OPERATORS, ("POST /v1/cleanup", "PUT /v1/retention")),
        Action("End the server…", OPERATORS, ("POST /v1/shutdown",)),
        Action("Download the backup", ADMINS, ("GET /v1/backup",)),
        Action("Also what jobs wrote, their logs and checkpoints", ADMINS),
        Action("Also the data sets", ADMINS),
        Action("Copy", ADMINS),
    )
