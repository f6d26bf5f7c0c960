"""Pushes by hand, as right or as wrong as a test wants them, over python-h2. It shares nothing with the stand-in."""

import json
import socket
import ssl
import time
import uuid

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import jwt

from support.apns import BUNDLE, KEY_ID, TEAM
from support.deadline import PATIENCE


def provider_token(key, team=TEAM, key_id=KEY_ID, algorithm="ES256", **claims):
    claims = {"iss": team, "iat": int(time.time()), **claims}
    return jwt.encode(claims, key, algorithm, headers={"kid": key_id})


class Answer:
    def __init__(self):
        self.status, self.headers, self.body, self.is_whole, self.reset = None, {}, b"", False, None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def reason(self):
        return self.json["reason"]


class APNsClient:
    def __init__(self, apns, token=None, alpn=("h2",)):
        self.apns = apns
        with open(apns.key_file) as file:
            self.key = file.read()
        self.token = token or provider_token(self.key)
        tls = ssl.create_default_context(cafile=apns.ca_file)
        if alpn:
            tls.set_alpn_protocols(list(alpn))
        plain = socket.create_connection(("127.0.0.1", apns.port), timeout=PATIENCE)
        self.socket = tls.wrap_socket(plain, server_hostname="127.0.0.1")
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False, header_encoding="utf-8"))
        # What nobody wants of a client that goes too far.
        self.obeys = True
        self.answers, self.goaways, self.limits, self.is_ended = {}, [], [], False
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        try:
            self.socket.sendall(self.h2.data_to_send())
        except (ConnectionError, ssl.SSLEOFError):
            # What the stand-in said before it went may still be there to be read.
            pass

    def read(self):
        """What comes next."""
        try:
            data = self.socket.recv(65536)
        except (ConnectionError, ssl.SSLEOFError):
            data = b""
        if not data:
            self.is_ended = True
            return
        for event in self.h2.receive_data(data):
            answer = self.answers.get(getattr(event, "stream_id", None))
            if isinstance(event, h2.events.RemoteSettingsChanged):
                limit = event.changed_settings.get(h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS)
                if limit:
                    self.limits.append(limit.new_value)
            elif isinstance(event, h2.events.ResponseReceived):
                answer.headers = dict(event.headers)
                answer.status = int(answer.headers[":status"])
            elif isinstance(event, h2.events.DataReceived):
                answer.body += event.data
            elif isinstance(event, h2.events.StreamEnded):
                answer.is_whole = True
            elif isinstance(event, h2.events.StreamReset):
                answer.reset = int(event.error_code)
            elif isinstance(event, h2.events.ConnectionTerminated):
                self.goaways.append((int(event.error_code), event.last_stream_id, event.additional_data))
                # python-h2 hears nothing more after it, and APNs goes on answering.
                self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
        if not self.is_ended:
            self.flush()

    def send(self, token, payload, method="POST", path=None, extra=(), **headers):
        """Header names are written with underscores; None leaves a header out. The answer, which comes later."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        wanted = {
            "authorization": f"bearer {self.token}", "apns_id": str(uuid.uuid4()), "apns_push_type": "alert",
            "apns_topic": BUNDLE, "apns_priority": "10", "apns_expiration": "0", **headers}
        fields = [(":method", method), (":scheme", "https"), (":authority", f"127.0.0.1:{self.apns.port}"),
                  (":path", path or f"/3/device/{token}")]
        fields += [(name.replace("_", "-"), value) for name, value in wanted.items() if value is not None]
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = answer = Answer()
        never = [_never_indexed(*field) if field[0] in (":path", "authorization") else field for field in fields]
        self.h2.send_headers(stream, [*never, *extra], end_stream=not body)
        if body:
            self.h2.send_data(stream, body, end_stream=True)
        self.flush()
        return answer

    def push(self, token, payload, **options):
        """Sends and waits; the answer."""
        return self.wait(self.send(token, payload, **options))

    def wait(self, answer, within=PATIENCE):
        end = time.monotonic() + within
        while not (answer.is_whole or answer.reset is not None or self.is_ended):
            assert time.monotonic() < end, "no answer"
            self.read()
        return answer

    def settle(self):
        """Everything that the stand-in said until now is read."""
        self.h2.ping(b"12345678")
        self.flush()
        before, acknowledged = self.h2.receive_data, []

        def receive(data):
            events = before(data)
            acknowledged.extend(event for event in events if isinstance(event, h2.events.PingAckReceived))
            return events
        self.h2.receive_data = receive
        while not acknowledged and not self.is_ended:
            self.read()
        self.h2.receive_data = before


def _never_indexed(name, value):
    from hpack import NeverIndexedHeaderTuple
    return NeverIndexedHeaderTuple(name, value)
