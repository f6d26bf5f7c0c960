"""The bytes that the benchmark's and the stress run's sockets make and take, against those of the tests."""

import importlib.util
import pathlib
import sys

import pytest

from support import websocket as reference

BENCH = pathlib.Path(__file__).resolve().parents[2] / "loadtest/bench"
SIZES = [0, 1, 125, 126, 300, 65_535, 65_536, 70_000]


@pytest.fixture(scope="module")
def websocket():
    sys.path.append(str(BENCH))
    try:
        spec = importlib.util.spec_from_file_location("bench_websocket", BENCH / "websocket.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCH))


@pytest.mark.parametrize("size", SIZES)
def test_frames_are_those_of_the_tests(websocket, monkeypatch, size):
    mask, payload = b"\x37\xfa\x21\x3d", bytes(n % 251 for n in range(size))
    monkeypatch.setattr(reference.os, "urandom", lambda count: mask)
    assert websocket.frame(websocket.BINARY, payload, mask) == reference.frame(reference.BINARY, payload)


def test_a_mask_of_zeros_leaves_the_payload_as_it_is(websocket):
    assert websocket.frame(websocket.TEXT, b"hello") == b"\x81\x85\0\0\0\0hello"


def test_what_a_server_sends_is_read_frame_by_frame(websocket):
    payloads = [bytes([n]) * size for n, size in enumerate(SIZES)]
    data = b"".join(reference.frame(reference.TEXT, payload, masked=False) for payload in payloads)
    found = list(websocket.frames(b"head" + data, 4))
    assert [opcode for opcode, _, _ in found] == [websocket.TEXT] * len(SIZES)
    assert [(b"head" + data)[begin:end] for _, begin, end in found] == payloads


@pytest.mark.parametrize("size", SIZES)
def test_a_frame_whose_end_has_not_come_waits(websocket, size):
    whole = reference.frame(reference.TEXT, b"first", masked=False)
    data = whole + reference.frame(reference.TEXT, bytes(size), masked=False)
    for end in {len(whole), len(whole) + 1, len(whole) + 2, len(data) - 1} - {len(data)}:
        assert [stop for _, _, stop in websocket.frames(data, 0, end)] == [len(whole)]
        assert [stop for _, _, stop in websocket.frames(data[:end])] == [len(whole)]
