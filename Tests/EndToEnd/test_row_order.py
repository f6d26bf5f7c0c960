"""A row's changes in the order in which they happened, whatever the application's own triggers do: tables, triggers and
statements made at random. ROOST_E2E_ORDER_SEEDS=N tries so many of each kind."""

import os

import pytest

from support.hub import Hub
from support.row_order import TRUTH, RowOrder

SEEDS = int(os.environ.get("ROOST_E2E_ORDER_SEEDS", "10"))
ROUNDS = 12


@pytest.fixture(scope="module")
def order(cluster):
    """A connection to a database that is ready for `RowOrder`, and what watches its tables."""
    hub = Hub(cluster.create_database("row_order"))
    try:
        hub.run("migrate")
        with cluster.connect("row_order") as sql:
            sql.execute("set client_min_messages = error; set max_stack_depth = '2MB'")
            sql.execute(TRUTH)
            yield sql, hub.watch
    finally:
        hub.remove()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_single_statements_under_triggers_are_in_order(order, seed):
    table = RowOrder(*order, seed, wild=False)
    for number in range(ROUNDS):
        assert table.round() == ([], [], []), number


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_done_nothing_is_lost_and_the_last_change_is_the_row(order, seed):
    """docs/protocol.md says which changes in between may change places."""
    table = RowOrder(*order, seed, wild=True)
    for number in range(ROUNDS):
        lost, wrong_in_the_end, _ = table.round()
        assert (lost, wrong_in_the_end) == ([], []), number
