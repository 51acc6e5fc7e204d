"""The SQL store, the registry and the audit log on PostgreSQL: the contracts, and what a lost connection does."""

import threading
from collections.abc import Iterator

import pytest
from tests.contracts.registry import AuditContract, RegistryContract
from tests.contracts.store import StoreContract, a_job, an_event
from tests.contracts.store_deletion import DeletionContract
from tests.contracts.store_filters import FilterContract
from tests.contracts.store_histograms import HistogramContract
from tests.contracts.store_noun_events import NounEventsContract
from tests.contracts.store_series import SeriesContract
from tests.contracts.store_slots import SlotsContract
from tests.contracts.store_writes import DurabilityContract, WritesContract
from tests.databases import cut_all, execute

from pliant.core.errors import InvalidInput, Unavailable
from pliant.core.job import JobId
from pliant.core.job_filter import JobFilter
from pliant.core.ports import EventFilter, Store, Writes
from pliant.core.registry import AuditEntry
from pliant.store.engine import open_engine, read_transaction
from pliant.store.sql import SqlStore


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlStore]:
    opened = SqlStore(postgres_url)
    yield opened
    opened.close()


@pytest.fixture
def open_store_source(postgres_url: str) -> str:
    return f"from pliant.store.sql import SqlStore\nstore = SqlStore({postgres_url!r})"


class TestPostgres(
    StoreContract,
    SeriesContract,
    HistogramContract,
    SlotsContract,
    FilterContract,
    DeletionContract,
    WritesContract,
    DurabilityContract,
    NounEventsContract,
):
    """PostgreSQL keeps the contract."""


class TestPostgresRegistry(RegistryContract):
    """PostgreSQL keeps the contract."""


class TestPostgresAudit(AuditContract):
    """PostgreSQL keeps the contract."""


def test_two_stores_on_one_database_share_the_numbers(postgres_url: str) -> None:
    stores = [SqlStore(postgres_url), SqlStore(postgres_url)]
    seqs: list[int] = []

    def write(store: SqlStore) -> None:
        for _ in range(25):
            seqs.extend(event.seq for event in store.write(Writes(events=(an_event("x"), an_event("y")))))

    threads = [threading.Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(seqs) == list(range(1, 101))
    for store in stores:
        store.close()


def test_servers_that_start_at_once_migrate_once(new_postgresql_url: str) -> None:
    opened: list[SqlStore] = []
    threads = [threading.Thread(target=lambda: opened.append(SqlStore(new_postgresql_url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(opened) == 4
    for store in opened:
        store.close()


def test_connections_that_were_cut_are_replaced_without_a_word(store: Store, postgres_url: str) -> None:
    store.write(Writes(jobs=(a_job(),), events=(an_event("before"),)))
    assert cut_all(postgres_url) > 0
    assert store.job(JobId("job-1")) == a_job()
    assert cut_all(postgres_url) > 0
    assert [event.seq for event in store.write(Writes(events=(an_event("after"),)))] == [2]


def test_a_transaction_that_is_cut_leaves_nothing_and_is_told(store: SqlStore, postgres_url: str) -> None:
    store.write(Writes(jobs=(a_job(),)))

    def cut_in_the_middle() -> None:
        with store._write_transaction() as connection:
            connection.exec_driver_sql("DELETE FROM job_texts")
            cut_all(postgres_url)
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(Unavailable, match="does not answer"):
        cut_in_the_middle()
    assert store.jobs(JobFilter(text="job-1")) == (a_job(),)


def test_sessions_say_who_they_are(store: Store, postgres_url: str) -> None:
    store.last_seq()
    names = execute(postgres_url, "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()")
    assert any(name.startswith("pliant ") for (name,) in names)


def test_a_statement_that_takes_too_long_is_ended(postgres_url: str) -> None:
    engine = open_engine(postgres_url, session={"statement_timeout": "100"})
    with pytest.raises(Unavailable, match="statement timeout"), read_transaction(engine) as connection:
        connection.exec_driver_sql("SELECT pg_sleep(20)")
    engine.dispose()


def test_entries_that_cannot_be_told_of_stay(store: SqlStore, postgres_url: str) -> None:
    for at in (1.0, 2.0):
        store.audit.append(AuditEntry(at=at, who="ada", action="POST /v1/jobs", status=201))
    with pytest.raises(InvalidInput, match="does not hold this value"):
        store.records.forget_entries(before=9.0, entry=AuditEntry(at=9.0, who="", action="\x00", status=200))
    assert store.records.num_entries(before=9.0) == 2


def test_a_value_that_no_column_holds_is_told_as_the_callers(store: Store) -> None:
    with pytest.raises(InvalidInput, match="does not hold this value"):
        store.job(JobId("job-\x00"))


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(Unavailable) as told:
        SqlStore("postgresql://ann:sesame@127.0.0.1:1/pliant?connect_timeout=2")
    assert "postgresql://ann@127.0.0.1:1/pliant does not answer" in str(told.value)
    assert "sesame" not in str(told.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_usual_scheme_names_the_same_database(postgres_url: str, scheme: str) -> None:
    store = SqlStore(f"{scheme}://{postgres_url.partition('://')[2]}")
    assert store.events(EventFilter()) == ()
    store.close()
