"""A connection to the push service for browsers: the frames are as in APNs' stand-in, the answers are RFC 8030's."""

import email.utils

from connection import Connection
from refusal import Refusal


class WebConnection(Connection):
    def _serve(self, request):
        service = self.service
        try:
            service.examined(request)
        except Refusal as refusal:
            return self.refuse(request, refusal)
        wrong = [f"a browser cannot decrypt it: {request.facts['undecryptable']}"] if "undecryptable" in request.facts else []
        rule = service.script.pick(request)
        if rule:
            self.actions.perform(rule, request, lambda: wrong)
        else:
            self.accept(request, lambda: wrong, self.pause())

    def note(self, request, status, reason=None, processed=False, answered=True):
        self.service.log.push(request, {
            "status": 201 if status == 200 else status, "reason": reason, "processed": processed, "answered": answered,
            "size": len(request.body), **request.facts})

    def refuse(self, request, refusal, retry_after=None):
        if refusal.violation:
            self.violation(refusal.violation, request)
        self.note(request, refusal.status, f"{refusal}")
        extra = [("retry-after", str(retry_after))] if retry_after is not None else []
        self.send(request, refusal.status, extra, f"{refusal}" or None)

    def send(self, request, status, headers=(), body=None):
        headers = [(":status", "201" if status == 200 else str(status)), *headers]
        if status == 200:
            headers.append(("location", f"{self.service.origin}/message/{request.stream}"))
        headers.append(("date", email.utils.formatdate(self.service.now, usegmt=True)))
        self.h2.send_headers(request.stream, headers, end_stream=body is None)
        if body is not None:
            self.h2.send_data(request.stream, body.encode(), end_stream=True)
        self.finish(request)
