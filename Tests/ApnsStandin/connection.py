"""One HTTP/2 connection (RFC 9113), by python3-h2, which refuses what is not allowed."""

import asyncio
import email.utils
import json
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from hyperframe.frame import GoAwayFrame

from actions import Actions
from refusal import Refusal
from request import Request
from stream_limit import StreamLimit

CONFIG = h2.config.H2Configuration(
    client_side=False, header_encoding="latin-1", normalize_outbound_headers=False, validate_outbound_headers=False)
Code = h2.settings.SettingCodes
#: Bad device tokens in a row for which a connection is ended.
PATIENCE = 20
#: Seconds a connection is kept for the client to end after its last answer: what a close crosses is lost.
LINGER = 2.0


class Connection(asyncio.Protocol):
    def __init__(self, service, listener):
        self.service, self.listener = service, listener
        self.h2 = h2.connection.H2Connection(CONFIG)
        # As local_settings["…"] = 1 it would be kept, and never be said to the client.
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={
            Code.MAX_CONCURRENT_STREAMS: service.first_streams, Code.INITIAL_WINDOW_SIZE: 65535, Code.MAX_FRAME_SIZE: 16384,
            Code.HEADER_TABLE_SIZE: 4096, Code.MAX_HEADER_LIST_SIZE: 8192})
        self.limit = StreamLimit(service.first_streams, service.streams)
        self.actions = Actions(self)
        self.requests = {}
        self.provider_token = None
        self.count = self.most_at_once = self.pings = self.bad_tokens = 0
        self.last_stream = None  # said in a GOAWAY; those above are not read any more
        self.how = "client"  # who ended it
        self.frozen = self.is_gone = False
        self.last_taken = 0  # the highest stream whose push was taken: a GOAWAY below it would be a lie

    @property
    def environment(self):
        return self.listener.environment

    # The transport

    def connection_made(self, transport):
        self.transport = transport
        self.service.opened += 1
        self.name = f"{self.service.process}-{self.service.opened}"
        self.service.connections.add(self)
        self.service.log.connection(self.name, "open")
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            self.violation("no ALPN h2")
            transport.close()
            return
        self.h2.initiate_connection()
        self.flush()

    def connection_lost(self, error):
        self.service.connections.discard(self)
        self.service.log.connection(
            self.name, "end", how=self.how, requests=self.count, most_at_once=self.most_at_once, pings=self.pings)

    def data_received(self, data):
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            # h2 has written the GOAWAY.
            self.violation(f"{type(error).__name__}: {error}")
            self.how = "violation"
            self.flush()
            self.transport.close()
            return
        for event in events:
            handler = self.HANDLERS.get(type(event))
            if handler and not self.is_gone:
                handler(self, event)
        self.flush()

    def flush(self):
        if self.frozen:
            return
        self.service.log.flush()
        data = self.h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def violation(self, what, request=None):
        self.service.log.violation(what, self.name, request)

    # Frames

    def _request(self, event):
        if self.last_stream is not None and event.stream_id > self.last_stream:
            return
        self.count += 1
        if self.count <= 20 or self.count % 64 == 0:
            self._check_indexing()
        self.requests[event.stream_id] = Request(self, event.stream_id, self.count, event.headers)
        self.most_at_once = max(self.most_at_once, len(self.requests))

    def _check_indexing(self):
        for name, _ in self.h2.decoder.header_table.dynamic_entries:
            if name in (b":path", b"authorization"):
                self.violation(f"{name.decode()} in the table of HPACK: secrets and paths are not to be indexed")
                break

    def _data(self, event):
        self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        request = self.requests.get(event.stream_id)
        if request:
            request.chunks.append(event.data)

    def _ended(self, event):
        request = self.requests.get(event.stream_id)
        if request:
            self._serve(request)

    def _reset(self, event):
        request = self.requests.pop(event.stream_id, None)
        if request:
            request.is_over = True
            self._end_if_done()

    def _ping(self, event):
        self.pings += 1

    def _goaway(self, event):
        if event.error_code:
            self.violation(f"the client said GOAWAY {event.error_code} {event.additional_data!r}")

    HANDLERS = {
        h2.events.RequestReceived: _request, h2.events.DataReceived: _data, h2.events.StreamEnded: _ended,
        h2.events.StreamReset: _reset, h2.events.PingReceived: _ping, h2.events.ConnectionTerminated: _goaway,
    }

    # Answers

    def _serve(self, request):
        service = self.service
        try:
            self.provider_token = service.authenticated(request, self.provider_token, self.environment)
            managed = service.managed(request)
            if managed:
                self.note(request, managed[0])
                return self.send(request, *managed)
            take = service.examined(request)
        except Refusal as refusal:
            return self.refuse(request, refusal)
        rule = service.script.pick(request)
        if rule:
            self.actions.perform(rule, request, take)
        else:
            self.accept(request, take, self.pause())

    def pause(self):
        """Seconds until an answer may go out, by the delay and the speed that were asked for."""
        service = self.service
        if not service.speed:
            return service.delay
        now = time.monotonic()
        service.next_answer = max(now, getattr(service, "next_answer", 0)) + 1 / service.speed
        return max(service.delay, service.next_answer - now)

    def accept(self, request, take, delay=0.0, answered=True):
        """The push is taken; `answered` False withholds the answer for good."""
        self.take(request, take)
        at_once = answered and not delay
        self.note(request, 200, processed=True, answered=at_once)
        if at_once:
            self.send(request, 200)
        elif answered:
            asyncio.get_running_loop().call_later(delay, self._later, request)

    def take(self, request, take):
        self.last_taken = max(self.last_taken, request.stream)
        for wrong in take():
            self.violation(wrong, request)

    def _later(self, request):
        if request.is_over or self.transport.is_closing():
            return
        if self.frozen:
            asyncio.get_running_loop().call_later(0.05, self._later, request)
            return
        self.service.log.answered(request)
        self.send(request, 200)
        self.flush()

    def note(self, request, status, reason=None, processed=False, answered=True):
        token = self.provider_token
        self.service.log.push(request, {
            "environment": self.environment, "status": status, "reason": reason, "processed": processed, "answered": answered,
            "issued_at": token.issued_at if token else None, "size": len(request.body), **request.facts})

    def refuse(self, request, refusal, retry_after=None):
        if refusal.violation:
            self.violation(f"{refusal.reason}: {refusal.violation}", request)
        self.note(request, refusal.status, refusal.reason)
        body = {"reason": refusal.reason}
        if refusal.timestamp is not None:
            body["timestamp"] = refusal.timestamp
        extra = [("retry-after", str(retry_after))] if retry_after is not None else []
        self.send(request, refusal.status, extra, body)
        self.bad_tokens = self.bad_tokens + 1 if refusal.reason == "BadDeviceToken" else 0
        if self.bad_tokens == PATIENCE:
            self.goaway(self.h2.highest_inbound_stream_id, "BadDeviceToken")

    def send(self, request, status, headers=(), body=None):
        headers = [(":status", str(status)), ("apns-id", request.headers.get("apns-id", "")), *headers]
        if status >= 400:
            headers.append(("date", email.utils.formatdate(self.service.now, usegmt=True)))
        self.h2.send_headers(request.stream, headers, end_stream=body is None)
        if body is not None:
            self.h2.send_data(request.stream, json.dumps(body).encode(), end_stream=True)
        self.finish(request)
        limit = self.limit.after(status)
        if limit is not None:
            self.h2.update_settings({Code.MAX_CONCURRENT_STREAMS: limit})

    def finish(self, request):
        request.is_over = True
        self.requests.pop(request.stream, None)
        self._end_if_done()

    # The end

    def goaway(self, last_stream, reason=None, final=True):
        """Says that streams above are not served. h2's own is the end of the connection at once."""
        if self.is_gone:
            return
        last_stream = max(last_stream, self.last_taken)
        data = json.dumps({"reason": reason}).encode() if reason else b""
        frame = GoAwayFrame(stream_id=0, last_stream_id=last_stream, error_code=0, additional_data=data)
        self.flush()
        if not self.transport.is_closing():
            self.transport.write(frame.serialize())
        if final:
            self.last_stream, self.how = last_stream, "goaway"
            for stream in [stream for stream in self.requests if stream > last_stream]:
                self.requests.pop(stream).is_over = True
            self._end_if_done()

    def _end_if_done(self):
        if self.last_stream is not None and not self.requests:
            asyncio.get_running_loop().call_later(LINGER, self.transport.close)

    def abort(self, how="abort"):
        if self.is_gone:
            return
        # What was answered before is on its way.
        self.flush()
        self.how, self.is_gone = how, True
        self.transport.abort()

    def freeze(self, seconds, then=None):
        """Neither reads nor writes for a while, like a host that hangs. What it answers when it wakes up may find nobody."""
        self.frozen, self.how = True, "frozen"
        self.transport.pause_reading()
        asyncio.get_running_loop().call_later(seconds, then or self._thaw)

    def vanish(self, seconds):
        """As a host that is gone: what is not read by now never is, and the client is not told before that time."""
        self.freeze(seconds, self.abort)

    def _thaw(self):
        self.frozen = False
        if not self.transport.is_closing():
            self.transport.resume_reading()
            self.flush()
            asyncio.get_running_loop().call_later(1, self._is_well)

    def _is_well(self):
        if self.how == "frozen" and not self.frozen:
            self.how = "client"
