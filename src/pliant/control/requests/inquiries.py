"""What people ask of a server besides jobs and queues: files of jobs, what was used, and the machines."""

from dataclasses import dataclass

from pliant.control.jobs.ledger import Ledger
from pliant.control.requests.histograms import HistogramQueries
from pliant.control.requests.job_files import JobFileQueries
from pliant.control.requests.labels import labels_of
from pliant.control.requests.machines import Machines
from pliant.control.requests.out_of_use import OutOfUse
from pliant.control.requests.queries import Queries
from pliant.control.requests.usage import UsageQueries
from pliant.control.settings import ControlSettings
from pliant.core.ports import Clock, Cluster, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiries:
    """The use cases, each safe to call from any thread."""

    files: JobFileQueries
    histograms: HistogramQueries
    usage: UsageQueries
    machines: Machines


def inquiries_of(
    store: Store,
    cluster: Cluster,
    clock: Clock,
    settings: ControlSettings,
    ledger: Ledger,
    queries: Queries,
    out_of_use: OutOfUse,
) -> Inquiries:
    """Return those of a control room; nothing is loaded yet."""
    labels = labels_of(store, clock, ledger, out_of_use)
    return Inquiries(
        files=JobFileQueries(store, settings),
        histograms=HistogramQueries(store),
        usage=UsageQueries(store, clock),
        machines=Machines(
            out_of_use=out_of_use, labels=labels, ledger=ledger, queries=queries, cluster=cluster, now=clock.now
        ),
    )
