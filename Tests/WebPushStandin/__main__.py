"""A push service for browsers, and the browsers, for tests: /usr/bin/python3 Tests/WebPushStandin --help"""

import argparse
import asyncio
import gc
import os
import signal
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "ApnsStandin"))

import certificates  # noqa: E402
import control  # noqa: E402
from listener import Listener  # noqa: E402
from log import Log  # noqa: E402
from web_connection import WebConnection  # noqa: E402
from web_service import WebService  # noqa: E402

control.HELP = """Web Push stand-in: the control port
GET  /summary        violations, answers by status and reason, connections
GET  /log?after=n    what came (records after the nth)
GET  /violations     what the client did wrong
POST /subscriptions  {"count"?: 1, "key"?: the public key that the page subscribes for}: subscriptions, as pages are told them
POST /tokens         {"<the end of an endpoint>": {"gone": 410 | 404} or null}
POST /script         a rule or a list of rules (see ../ApnsStandin/script.py); DELETE /script forgets them
POST /settings       {"delay", "speed", "streams", "largest", "clock_offset", "keeps_bodies": whole requests in the log}
POST /connections    {"do": "goaway" | "abort" | "freeze" | "vanish" | "refuse", "seconds"?: 1}
POST /reset          forget what it was told and what it saw
"""


class Control(control.Control):
    async def _subscriptions(self, told, query):
        return [self.service.subscribe(told.get("key")) for _ in range(told.get("count", 1))]

    async def _tokens(self, told, query):
        for name, facts in told.items():
            self.service.tell(name, facts)
        return {}

    async def _settings(self, told, query):
        known = ("delay", "speed", "streams", "largest", "clock_offset", "keeps_bodies")
        if not set(told) <= set(known):
            raise ValueError(f"settings are {', '.join(known)}")
        for name, value in told.items():
            setattr(self.service, name, value)
        self.service.clock_was_set |= self.service.clock_offset != 0
        return {name: getattr(self.service, name) for name in known}

    ROUTES = control.Control.ROUTES | {
        ("POST", "/subscriptions"): _subscriptions, ("POST", "/tokens"): _tokens, ("POST", "/settings"): _settings}


def options():
    parser = argparse.ArgumentParser(prog="webpush-standin", description=__doc__)
    add = parser.add_argument
    add("--port", type=int, default=2297, help="for pushes; 0 takes a free one (2297)")
    add("--control-port", type=int, default=2298, help="for the control (2298)")
    add("--folder", help="for its certificates, which it makes where there are none (a new one)")
    add("--delay", type=float, default=0.0, help="seconds until each answer (0)")
    add("--speed", type=float, default=0.0, help="answers per second at most (0: no limit)")
    add("--streams", type=int, default=100, help="concurrent streams (100)")
    add("--trusting", action="store_true", help="do not decrypt: for load generators")
    add("--log", help="a file for a line of JSON per event")
    add("--quiet", action="store_true", help="do not print a line for each push")
    return parser.parse_args()


def shown(record):
    if record["kind"] == "violation":
        return f"VIOLATION  {record['what']}"
    return f"{record['status'] or 'no answer'} {record['reason'] or ''}  …{record.get('token', '')[-8:]}  {str(record.get('payload', ''))[:120]}"


async def main():
    arguments = options()
    folder = os.path.abspath(arguments.folder or tempfile.mkdtemp(prefix="webpush-standin-"))
    os.makedirs(folder, exist_ok=True)
    certificates.make(folder)
    show = None if arguments.quiet else lambda record: print(shown(record), flush=True) if record["kind"] != "connection" else None
    service = WebService(arguments.streams, Log(arguments.log, show), arguments.trusting)
    service.process = os.getpid()
    service.delay, service.speed = arguments.delay, arguments.speed
    listener = Listener(service, "127.0.0.1", arguments.port, certificates.context(folder), "web", WebConnection)
    await listener.open()
    service.origin = f"https://127.0.0.1:{listener.port}"
    server = await asyncio.start_server(Control(service, [listener]).serve, "127.0.0.1", arguments.control_port)
    control_port = server.sockets[0].getsockname()[1]
    gc.freeze()
    print(f"""Web Push stand-in: {service.origin}
control: http://127.0.0.1:{control_port}   CA: {folder}/ca.pem

export ROOST_WEB_PUSH_NETWORKS=127.0.0.0/8
export ROOST_WEB_PUSH_CA_FILE={folder}/ca.pem
export ROOST_WEB_PUSH_SUBJECT=mailto:ops@example.com
export ROOST_WEB_PUSH_PRIVATE_KEY=$(roost push keys | sed -n 's/private key: //p')
""", flush=True)
    print("listening", flush=True)
    stopped = asyncio.Event()
    for number in signal.SIGINT, signal.SIGTERM:
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    return 1 if service.log.violation_count else 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except OSError as error:
        sys.exit(f"The stand-in cannot start: {error.strerror}. Is another one running? --port and --control-port take others.")
