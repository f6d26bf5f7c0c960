"""The Redis that tests of several hubs use does what they say it does."""

import re
import socket
import ssl

import pytest

from support.certificates import Authority
from support.deadline import until
from support.hub import ROOT
from support.redis import ACL, Redis, RedisError, sentinel_of


def test_it_keeps_its_data_only_where_it_is_told_to():
    for settings, kept in (((), None), (("appendonly yes",), "x")):
        with Redis(*settings) as server:
            server.ask("SET", "k", "x")
            server.kill()
            server.start()
            assert server.ask("GET", "k") == kept


def test_the_rights_are_those_that_the_hub_asks_for():
    text = (ROOT / "Sources/Redis/Protocol/RedisFailure.swift").read_text()
    declared = text[text.index("enum RedisRights"):]
    assert "".join(re.findall(r'"([^"]*)"', declared)) == ACL


def test_passwords_users_and_their_rights():
    with Redis(password="secret", users=[("roost", "theirs")]) as server:
        assert server.url() == f"redis://:secret@127.0.0.1:{server.port}"
        with socket.create_connection(("127.0.0.1", server.port)) as other:
            other.sendall(b"PING\r\n")
            assert other.recv(100).startswith(b"-NOAUTH")
            other.sendall(b"AUTH roost theirs\r\n")
            assert other.recv(100) == b"+OK\r\n"
            other.sendall(b"SET {roost:a}:m x\r\n")
            assert other.recv(100) == b"+OK\r\n"
            other.sendall(b"SET other x\r\n")
            assert other.recv(200).startswith(b"-NOPERM")


def test_tls(tmp_path):
    authority = Authority(tmp_path)
    with Redis(pair=authority.pair(), authority=authority) as server:
        with socket.create_connection(("127.0.0.1", server.tls_port)) as plain:
            with authority.trust.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                connection.sendall(b"PING\r\n")
                assert connection.recv(100) == b"+PONG\r\n"
        with socket.create_connection(("127.0.0.1", server.tls_port)) as plain, pytest.raises(ssl.SSLError):
            ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")


def test_frozen_it_is_silent_and_keeps_what_it_was_sent():
    with Redis() as server, socket.create_connection(("127.0.0.1", server.port)) as other:
        server.freeze()
        other.sendall(b"SET k x\r\n")
        other.settimeout(0.2)
        with pytest.raises(TimeoutError):
            other.recv(100)
        server.thaw()
        other.settimeout(10)
        assert other.recv(100) == b"+OK\r\n"
        server.freeze()
        other.sendall(b"SET k y\r\n")
        server.kill_frozen()
        with pytest.raises(ConnectionResetError):
            other.recv(100)


def test_a_replica_lacks_what_came_after_it_was_cut_off():
    with Redis() as primary, Redis() as replica:
        primary.ask("SET", "k", "before")
        replica.follow(primary)
        assert replica.ask("GET", "k") == "before"
        with pytest.raises(RedisError, match="READONLY"):
            replica.ask("SET", "k", "x")
        replica.cut_off()
        primary.ask("SET", "k", "after")
        replica.promote()
        assert replica.ask("GET", "k") == "before"
        assert replica.information("replication")["role"] == "master"


def test_sentinel_names_the_replica_once_the_primary_is_gone():
    with Redis() as primary, Redis() as replica:
        replica.follow(primary)
        with sentinel_of(primary) as sentinel:
            assert sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main") == ["127.0.0.1", str(primary.port)]
            until(lambda: len(sentinel.ask("SENTINEL", "REPLICAS", "main")) == 1, within=30, what="Sentinel knows the replica")
            primary.kill()
            until(lambda: sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main") == ["127.0.0.1", str(replica.port)],
                  within=60, what="the failover")


def test_clients_are_cut_off_by_kind():
    with Redis() as server:
        with socket.create_connection(("127.0.0.1", server.port)) as one, socket.create_connection(("127.0.0.1", server.port)) as two:
            two.sendall(b"SUBSCRIBE c\r\n")
            assert two.recv(100).startswith(b"*3")
            one.sendall(b"PING\r\n")
            assert one.recv(100) == b"+PONG\r\n"
            server.kill_clients("pubsub")
            assert two.recv(100) == b""
            one.sendall(b"PING\r\n")
            assert one.recv(100) == b"+PONG\r\n"
            server.kill_clients()
            assert one.recv(100) == b""
