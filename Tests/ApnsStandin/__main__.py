"""Apple's push service as its documentation has it, for tests: /usr/bin/python3 Tests/ApnsStandin --help"""

import argparse
import asyncio
import gc
import os
import signal
import sys
import tempfile

import certificates
import provider_key
from control import Control
from listener import Listener
from log import Log
from service import Service


def options():
    parser = argparse.ArgumentParser(prog="apns-standin", description=__doc__)
    add = parser.add_argument
    add("--port", type=int, default=2197, help="for pushes; 0 takes a free one (2197)")
    add("--other-port", type=int, default=2199, help="for the other of Apple's two services; 0 takes a free one, -1 none (2199)")
    add("--control-port", type=int, default=2198, help="for the control (2198)")
    add("--folder", help="for its certificates and its key, which it makes where there are none (a new one)")
    add("--team", default="STANDINTEA", help="team id of the key")
    add("--key-id", default="STANDINKEY", help="id of the key")
    add("--key", action="append", default=[], metavar="TEAM:KEY_ID:FILE[:ENVIRONMENT]", help="another key, PEM")
    add("--key-environment", choices=["sandbox", "production"], help="the only environment that its own key is for (both)")
    add("--environment", choices=["sandbox", "production"], default="sandbox", help="which of Apple's two services it is")
    add("--topic", action="append", default=[], help="a bundle id that the keys may push to (all)")
    add("--delay", type=float, default=0.0, help="seconds until each answer (0)")
    add("--speed", type=float, default=0.0, help="answers per second at most (0: no limit)")
    add("--streams", type=int, default=1000, help="concurrent streams for who is known (1000)")
    add("--first-streams", type=int, default=1, help="and before; more only for load generators that do not wait (1)")
    add("--log", help="a file for a line of JSON per event")
    add("--quiet", action="store_true", help="do not print a line for each push")
    return parser.parse_args()


def shown(record):
    """One line about a push or a violation. Of a token, what tells it from others."""
    if record["kind"] == "violation":
        return f"VIOLATION  {record['what']}"
    if "payload" not in record:
        return f"{record['status']} {record['reason']}  {record['method']} {record['path'][:24]}"
    aps = record["payload"]["aps"]
    alert = aps.get("alert")
    words = [
        record["environment"], record["headers"].get("apns-push-type", ""), f"{record.get('token') or record.get('channel')}"[:8] + "…",
        aps.get("event", ""), str(alert if isinstance(alert, str) else (alert or {}).get("title", "")),
        str(aps.get("content-state", ""))[:80]]
    return f"{record['status'] or 'no answer'} {record['reason'] or ''}  " + "  ".join(word for word in words if word)


def welcome(arguments, listeners, control_port, folder, key):
    with open(key) as file:
        escaped = file.read().strip().replace("\n", "\\n")
    topic = arguments.topic[0] if arguments.topic else "com.example.app"
    urls = {listener.environment: f"https://127.0.0.1:{listener.port}" for listener in listeners}
    others = [environment for environment in urls if environment != arguments.environment]
    more = "".join(f"other service ({environment}): {urls[environment]}\n" for environment in others)
    variables = f"export ROOST_APNS_URL={urls.get('production', urls[arguments.environment])}"
    if others:
        variables += f"\nexport ROOST_APNS_SANDBOX_URL={urls['sandbox']}"
    return f"""APNs stand-in ({arguments.environment}): {urls[arguments.environment]}
{more}control: http://127.0.0.1:{control_port}   CA: {folder}/ca.pem   key: {key}

{variables}
export ROOST_APNS_CA_FILE={folder}/ca.pem
export ROOST_APNS_TOPIC={topic}
export ROOST_APNS_TEAM_ID={arguments.team}
export ROOST_APNS_KEY_ID={arguments.key_id}
export ROOST_APNS_ENVIRONMENT={arguments.environment}
export ROOST_APNS_PRIVATE_KEY='{escaped}'
"""


def keys(arguments, own):
    known = {(arguments.team, arguments.key_id): (provider_key.public(own), arguments.key_environment)}
    for text in arguments.key:
        team, key_id, path, *environment = text.split(":")
        known[team, key_id] = (provider_key.public(path), environment[0] if environment else None)
    return known


async def main():
    arguments = options()
    folder = os.path.abspath(arguments.folder or tempfile.mkdtemp(prefix="apns-standin-"))
    os.makedirs(folder, exist_ok=True)
    certificates.make(folder)
    key = provider_key.make(folder)
    show = None if arguments.quiet else lambda record: print(shown(record), flush=True)
    service = Service(
        keys(arguments, key), arguments.environment, arguments.topic, arguments.streams, Log(arguments.log, show))
    service.process, service.first_streams = os.getpid(), arguments.first_streams
    service.delay, service.speed = arguments.delay, arguments.speed
    tls = certificates.context(folder)
    listeners = [Listener(service, "127.0.0.1", arguments.port, tls)]
    if arguments.other_port >= 0:
        other = "production" if arguments.environment == "sandbox" else "sandbox"
        listeners.append(Listener(service, "127.0.0.1", arguments.other_port, tls, other))
        service.has_both = True
    for listener in listeners:
        await listener.open()
    control = await asyncio.start_server(Control(service, listeners).serve, "127.0.0.1", arguments.control_port)
    control_port = control.sockets[0].getsockname()[1]
    # What is there now stays; the collector need not look at it again.
    gc.freeze()
    print(welcome(arguments, listeners, control_port, folder, key), flush=True)
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
