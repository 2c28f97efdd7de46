from __future__ import annotations

import os

import pytest

from agex.errors import StateError


@pytest.fixture
def postgres(opening):
    return opening("postgres")


def hang_up(dsn):
    """End all other connections, as a server does that is started anew."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def test_a_connection_that_the_server_dropped_is_made_anew(postgres, postgres_dsn):
    postgres.set("key", b"1")
    hang_up(postgres_dsn)
    assert postgres.get("key") == b"1"
    hang_up(postgres_dsn)
    postgres.set_many({"key": b"2", "other": b"3"})
    assert dict(postgres.items()) == {"key": b"2", "other": b"3"}


def test_a_cas_on_a_dropped_connection_is_an_error_and_not_tried_again(postgres, postgres_dsn):
    postgres.set("key", b"1")
    hang_up(postgres_dsn)
    with pytest.raises(StateError, match="PostgreSQL"):
        postgres.cas("key", b"2", b"1")
    assert postgres.cas("key", b"2", b"1") is True


def test_the_table_has_any_name_and_is_made_once(postgres_dsn):
    from agex.state.postgres import PostgresStore

    name = 'odd "name"; --'
    one = PostgresStore(postgres_dsn, table=name)
    other = PostgresStore(postgres_dsn, table=name)
    one.set("key", b"1")
    assert other.get("key") == b"1"
    one.close()
    other.close()
    other.close()


# The suite's own threads do nothing that the child would wait for.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_of_the_process_goes_on_with_a_connection_of_its_own(postgres):
    postgres.set("key", b"1")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            postgres.set("child", b"2")
            code = 0 if postgres.get("key") == b"1" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert dict(postgres.items()) == {"key": b"1", "child": b"2"}
