"""The load client: the referee's where there is one, else ours."""

from failure import Failure
from roost_load import RoostLoad
from wsload import Wsload


def client(tools):
    if tools.wsload:
        return Wsload(tools.wsload)
    if tools.roost_load.exists():
        return RoostLoad(tools.roost_load)
    raise Failure("there is no load client: build .build/release/roost-load (make build)", 69)
