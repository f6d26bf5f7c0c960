"""What a push to Android costs the client: pushes a second, and its CPU for each, against nghttpd, which takes everything at once.

    .venv/bin/python loadtest/fcm.py [pushes] [rounds]
"""

import datetime
import ipaddress
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOST = ROOT / ".build/release/roost"
PAYLOAD = {
    "notification": {"title": "Ada Lovelace in Launch crew", "body": "Shall we meet at ten, before the others come? I have the drawings with me."},
    "android": {"notification": {"tag": "public.messages 1234567", "channel_id": "messages", "sound": "default", "notification_count": 3}},
    "data": {"conversationId": "c0000000-0000-4000-8000-000000000001", "messageId": "1234567", "threadId": "c0000000-0000-4000-8000-000000000001"}}


def pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def certificate(folder):
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
            .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), True).sign(key, hashes.SHA256()))
    (folder / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(pem(key))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(folder):
    """What nghttpd has at the paths of FCM and of the token server."""
    www = folder / "www"
    (www / "v1/projects/bench").mkdir(parents=True)
    (www / "v1/projects/bench/messages:send").write_text(json.dumps({"name": "projects/bench/messages/0:1500415314455276%31bd1c9631bd1c96"}))
    (www / "token").write_text(json.dumps({"access_token": "ya29." + "x" * 1019, "expires_in": 3599, "token_type": "Bearer"}))
    return www


def run(folder, port, lines):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")} | {
        "ROOST_FCM_URL": f"https://127.0.0.1:{port}", "ROOST_FCM_CA_FILE": str(folder / "cert.pem"),
        "ROOST_FCM_SERVICE_ACCOUNT": str(folder / "account.json")}
    began, before = time.monotonic(), os.times()
    with open(lines) as source, open(os.devnull, "w") as nowhere:
        result = subprocess.run([ROOST, "push", "--file", "-"], stdin=source, stdout=nowhere, env=environment, cwd=folder)
    after = os.times()
    if result.returncode:
        sys.exit("not all pushes were delivered")
    return time.monotonic() - began, after.children_user + after.children_system - before.children_user - before.children_system


def main():
    count, rounds = (int(word) for word in (sys.argv[1:] + ["100000", "3"][len(sys.argv) - 1:]))
    with tempfile.TemporaryDirectory(prefix="roost-bench-fcm-") as name:
        folder, port = pathlib.Path(name), free_port()
        certificate(folder)
        (folder / "account.json").write_text(json.dumps({
            "type": "service_account", "project_id": "bench", "private_key_id": "1", "client_email": "a@bench",
            "private_key": pem(rsa.generate_private_key(65537, 2048)).decode(), "token_uri": f"https://127.0.0.1:{port}/token"}))
        lines = folder / "lines"
        with open(lines, "w") as file:
            for number in range(count):
                file.write(json.dumps({"kind": "fcm", "token": f"cXyz{number:012}:APA91b{'x' * 134}", "payload": PAYLOAD}) + "\n")
        server = subprocess.Popen(
            ["nghttpd", "-a", "127.0.0.1", "-d", answers(folder), str(port), folder / "key.pem", folder / "cert.pem"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            results = [run(folder, port, lines) for _ in range(rounds)]
        finally:
            server.kill()
            server.wait()
    took, cpu = (statistics.median(values) for values in zip(*results, strict=True))
    print(f"{count} pushes: {count / took:.0f} a second, {cpu / count * 1e6:.1f} µs of CPU each, so {count / cpu:.0f} a second of one core "
          f"(median of {rounds}; the reading of lines and the writing of outcomes are in it)")


if __name__ == "__main__":
    main()
