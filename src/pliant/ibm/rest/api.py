"""IBM's API as the application takes it in: all of its routes, in the order in which their paths are tried."""

from typing import Final

from pliant.ibm.rest.errors import IbmErrors
from pliant.ibm.rest.routes import (
    absent,
    conductor,
    datasets,
    edi_auth,
    edi_deployment,
    edi_inference,
    edi_models,
    edi_runtimes,
    execs,
    hpo_algorithms,
    hypersearch,
    logon,
    model_tunings,
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
        hpo_algorithms.routes,
        hypersearch.routes,
        conductor.routes,
        datasets.routes,
        templates.routes,
        models.routes,
        trainings.routes,
        model_tunings.routes,
        edi_auth.routes,
        edi_inference.routes,
        edi_deployment.routes,
        edi_runtimes.routes,
        edi_models.routes,
        absent.deep_learning,
        absent.conductor,
        absent.inference,
    ),
    middleware=IbmErrors,
)
