"""Firebase Cloud Messaging and Google's token server as their documentation has them, for tests: .venv/bin/python Tests/FcmStandin --help"""

import argparse
import asyncio
import gc
import os
import pathlib
import signal
import sys
import tempfile

# TLS, frames, the script and the log are those of the stand-in for Apple.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "ApnsStandin"))

import certificates  # noqa: E402
from fcm_connection import FcmConnection  # noqa: E402
from fcm_control import FcmControl  # noqa: E402
from fcm_service import FcmService  # noqa: E402
from listener import Listener  # noqa: E402
from log import Log  # noqa: E402
from service_account import ServiceAccount  # noqa: E402


def options():
    parser = argparse.ArgumentParser(prog="fcm-standin", description=__doc__)
    add = parser.add_argument
    add("--port", type=int, default=2200, help="for pushes and access tokens; 0 takes a free one (2200)")
    add("--control-port", type=int, default=2201, help="for the control (2201)")
    add("--folder", help="for its certificates and its service account, which it makes where there are none (a new one)")
    add("--project", default="roost-standin", help="the project's id")
    add("--delay", type=float, default=0.0, help="seconds until each answer (0)")
    add("--speed", type=float, default=0.0, help="answers per second at most (0: no limit)")
    add("--streams", type=int, default=100, help="concurrent streams of a connection (100)")
    add("--log", help="a file for a line of JSON per event")
    add("--quiet", action="store_true", help="do not print a line for each push")
    return parser.parse_args()


def shown(record):
    """One line about a push or a violation. Of a token, what tells it from others."""
    if record["kind"] == "violation":
        return f"VIOLATION  {record['what']}"
    message = record.get("payload") or {}
    words = [f"{record.get('token') or record['path']}"[:8] + "…", str(message.get("notification", "")), str(message.get("data", ""))[:120]]
    return f"{record['status'] or 'no answer'} {record['reason'] or ''}  " + "  ".join(word for word in words if word)


async def main():
    arguments = options()
    folder = os.path.abspath(arguments.folder or tempfile.mkdtemp(prefix="fcm-standin-"))
    os.makedirs(folder, exist_ok=True)
    certificates.make(folder)
    show = None if arguments.quiet else lambda record: print(shown(record), flush=True)
    service = FcmService(arguments.project, arguments.streams, Log(arguments.log, show))
    service.process, service.delay, service.speed = os.getpid(), arguments.delay, arguments.speed
    listener = Listener(service, "127.0.0.1", arguments.port, certificates.context(folder), connection=FcmConnection)
    await listener.open()
    service.account = ServiceAccount(folder, arguments.project, f"https://127.0.0.1:{listener.port}/token")
    control = await asyncio.start_server(FcmControl(service, [listener]).serve, "127.0.0.1", arguments.control_port)
    control_port = control.sockets[0].getsockname()[1]
    gc.freeze()
    print(f"""FCM stand-in: https://127.0.0.1:{listener.port}
control: http://127.0.0.1:{control_port}   CA: {folder}/ca.pem

export ROOST_FCM_URL=https://127.0.0.1:{listener.port}
export ROOST_FCM_CA_FILE={folder}/ca.pem
export ROOST_FCM_SERVICE_ACCOUNT={service.account.path}
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
