"""What the hub tells systemd, on a real socket: Type=notify, the status, the watchdog."""

import signal
import time

import pytest

from support.deadline import until
from support.freezing import freeze
from support.hub import Hub
from support.notify_socket import NotifySocket
from support.ports import free_port


@pytest.fixture
def systemd():
    manager = NotifySocket()
    yield manager
    manager.close()


def test_ready_when_it_listens_and_stopping_when_it_drains(own_hub, systemd):
    own_hub.environment |= {"NOTIFY_SOCKET": systemd.variable, "ROOST_DRAIN_SECONDS": "40", "ROOST_DRAIN_DELAY_SECONDS": "1"}
    own_hub.start()
    systemd.has("READY=1")
    assert systemd.status == "row changes flow"
    own_hub.process.send_signal(signal.SIGTERM)
    systemd.has("STOPPING=1")
    # However long the drain may take, systemd waits for it: 1 s and 40 s, and the margin.
    assert "EXTEND_TIMEOUT_USEC=46000000" in systemd.lines
    systemd.has("STATUS=the hub is draining before it stops")
    assert own_hub.process.wait(30) == 0
    assert systemd.take().count("READY=1") == 1


def test_it_says_that_it_lives_as_often_as_it_is_asked(own_hub, systemd):
    own_hub.environment |= {"NOTIFY_SOCKET": systemd.variable, "WATCHDOG_USEC": "2000000"}
    own_hub.start()
    until(lambda: systemd.take().count("WATCHDOG=1") >= 2, what="signs of life")
    freeze(own_hub.process.pid)
    seen = len(systemd.take())
    time.sleep(1.5)
    assert "WATCHDOG=1" not in systemd.take()[seen:]
    own_hub.process.send_signal(signal.SIGCONT)
    systemd.has("WATCHDOG=1", after=seen)
    own_hub.stop()


def test_a_watchdog_meant_for_another_process_is_none(own_hub, systemd):
    own_hub.environment |= {"NOTIFY_SOCKET": systemd.variable, "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}
    own_hub.start()
    systemd.has("READY=1")
    time.sleep(1.5)
    assert "WATCHDOG=1" not in systemd.take()
    own_hub.stop()


def test_a_database_that_is_away_does_not_fail_the_start(systemd):
    """After ten seconds the hub is up as far as systemd goes, and its status says what is missing."""
    hub = Hub(f"postgres://postgres@127.0.0.1:{free_port()}/chat", NOTIFY_SOCKET=systemd.variable)
    try:
        began = time.monotonic()
        hub.start(wait=False)
        until(lambda: (systemd.status or "").startswith("not ready: "), what="a status")
        assert "READY=1" not in systemd.lines
        systemd.has("READY=1")
        assert time.monotonic() - began > 9.5
        assert hub.ops("/readyz")[0] == 503
        assert systemd.status.startswith("not ready: "), systemd.status
    finally:
        hub.remove()


def test_a_configuration_that_is_wrong_is_never_ready(own_hub, systemd):
    own_hub.environment |= {"NOTIFY_SOCKET": systemd.variable, "ROOST_HTTP_PORT": "none"}
    own_hub.start(wait=False)
    assert own_hub.process.wait(30) == 78
    assert systemd.take() == []


def test_a_manager_that_is_not_there_is_complained_of_once(own_hub):
    own_hub.environment |= {"NOTIFY_SOCKET": "@roost-nobody-listens-here"}
    own_hub.start()
    until(lambda: "The hub cannot report its status to systemd" in own_hub.log, what="a warning")
    time.sleep(2.5)
    assert own_hub.log.count("The hub cannot report its status to systemd") == 1
    own_hub.stop()
