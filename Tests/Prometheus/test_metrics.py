"""/metrics of a real hub: as Prometheus wants it, and as the rules, the dashboard and the manual have it."""

import pytest

from figures import explained, made, used
from prometheus import DASHBOARD, MANUAL, RULES, promtool
from support.deadline import until


@pytest.fixture(scope="session")
def exposition(hub):
    # The outbox is measured while somebody asks, so the second answer has it; the slot once the hub leads; loops publish once a second.
    for name in ("roost_outbox_rows", "roost_capture_kept_bytes", "roost_capture_lag_bytes", "roost_connections_closed_total{"):
        until(lambda: name in hub.ops("/metrics")[1], 20, name)  # noqa: B023
    status, text = hub.ops("/metrics")
    assert status == 200
    return text


def test_promtool_finds_nothing(exposition):
    assert promtool("check", "metrics", text=exposition) == (0, "")


def test_the_manual_has_every_figure_once(exposition):
    names = explained(MANUAL.read_text())
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    assert set(names) == set(made(exposition))


@pytest.mark.parametrize("file", [RULES, DASHBOARD], ids=lambda file: file.name)
def test_no_figure_is_used_that_there_is_not(exposition, file):
    kinds = made(exposition)
    names = used(file.read_text(), kinds)
    assert len(names) > 10
    assert names - set(kinds) == set()


def test_the_dashboard_shows_every_figure(exposition):
    kinds = made(exposition)
    assert set(kinds) - used(DASHBOARD.read_text(), kinds) == set()
