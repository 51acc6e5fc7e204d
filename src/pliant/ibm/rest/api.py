"""IBM's API as the application takes it in: all of its routes, in the order in which their paths are tried."""

from typing import Final

from pliant.ibm.rest.errors import IbmErrors
from pliant.ibm.rest.routes import (
    absent,
    conductor,
    datasets,
    execs,
    logon,
    models,
    scheduler,
    server,
    templates,
    trainings,
)
from pliant.server.app import OtherApi

IBM: Final = OtherApi(
    routes=(
        logon.auth,
        logon.conductor,
        server.routes,
        scheduler.routes,
        execs.routes,
        conductor.routes,
        datasets.routes,
        templates.routes,
        models.routes,
        trainings.routes,
        absent.deep_learning,
        absent.conductor,
    ),
    middleware=IbmErrors,
)
