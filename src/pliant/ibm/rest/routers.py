"""All routers of IBM's API, in the order in which their paths are tried."""

from typing import Final

from fastapi import APIRouter

from pliant.ibm.rest.routes import (
    absent,
    conductor,
    datasets,
    execs,
    logon,
    models,
    scheduler,
    site,
    templates,
    trainings,
)

OPEN: Final[tuple[APIRouter, ...]] = (logon.open_auth, logon.open_conductor)
"""Need no credentials but those of the logon itself."""

CLOSED: Final[tuple[APIRouter, ...]] = (
    logon.auth,
    logon.conductor,
    site.routes,
    scheduler.routes,
    execs.routes,
    conductor.routes,
    datasets.routes,
    templates.routes,
    models.routes,
    trainings.routes,
    absent.routes,
    absent.of_conductor,
)
"""Every route of them takes a `Caller`, or depends on `credentials.allowed`."""
