"""What a push to a browser costs the client: pushes a second, and its CPU for each, against nghttpd, which takes everything at once.

    .venv/bin/python loadtest/webpush.py [pushes] [rounds]
"""

import base64
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fcm import ROOST, certificate, free_port

MESSAGE = {
    "title": "Ada Lovelace in Launch crew", "body": "Shall we meet at ten, before the others come? I have the drawings with me.",
    "tag": "public.messages 1234567", "badge": 3, "thread": "c0000000-0000-4000-8000-000000000001",
    "data": {"conversationId": "c0000000-0000-4000-8000-000000000001", "messageId": "1234567"}}


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def main():
    count, rounds = (int(word) for word in (sys.argv[1:] + ["30000", "3"][len(sys.argv) - 1:]))
    key = ec.generate_private_key(ec.SECP256R1())
    with tempfile.TemporaryDirectory(prefix="roost-bench-webpush-") as name:
        folder, port = pathlib.Path(name), free_port()
        certificate(folder)
        (folder / "www").mkdir()
        (folder / "www/push").write_text("")
        point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": encoded(point), "auth": encoded(bytes(16))}
        with open(folder / "lines", "w") as file:
            for number in range(count):
                subscription = {"endpoint": f"https://127.0.0.1:{port}/push?{number:0150}", "keys": keys}
                file.write(json.dumps({"kind": "web", "subscription": subscription, "payload": MESSAGE}) + "\n")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")} | {
            "ROOST_WEB_PUSH_PRIVATE_KEY": encoded(key.private_numbers().private_value.to_bytes(32, "big")),
            "ROOST_WEB_PUSH_SUBJECT": "mailto:ops@example.com", "ROOST_WEB_PUSH_NETWORKS": "127.0.0.0/8",
            "ROOST_WEB_PUSH_CA_FILE": str(folder / "cert.pem")}
        server = subprocess.Popen(
            ["nghttpd", "-a", "127.0.0.1", "-d", folder / "www", str(port), folder / "key.pem", folder / "cert.pem"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            results = [run(folder, environment) for _ in range(rounds)]
        finally:
            server.kill()
            server.wait()
    took, cpu = (statistics.median(values) for values in zip(*results, strict=True))
    print(f"{count} pushes: {count / took:.0f} a second, {cpu / count * 1e6:.1f} µs of CPU each, so {count / cpu:.0f} a second of one core "
          f"(median of {rounds}; the reading of lines and the writing of outcomes are in it)")


def run(folder, environment):
    began, before = time.monotonic(), os.times()
    with open(folder / "lines") as source, open(os.devnull, "w") as nowhere:
        result = subprocess.run([ROOST, "push", "--file", "-"], stdin=source, stdout=nowhere, env=environment, cwd=folder)
    after = os.times()
    if result.returncode:
        sys.exit("not all pushes were delivered")
    return time.monotonic() - began, after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    main()
