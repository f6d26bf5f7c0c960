"""One HTTP/2 connection to FCM, or to Google's token server: here they are one."""

import email.utils
import json

from assertions import NoToken
from connection import Connection
from refusal import Refusal

#: `google.rpc.Code` beside an HTTP status.
RPC = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
       500: "INTERNAL", 503: "UNAVAILABLE"}
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"


class FixedLimit:
    """Google's limit of streams stays as it is."""

    def after(self, status):
        return None


class FcmConnection(Connection):
    def __init__(self, service, listener):
        super().__init__(service, listener)
        self.limit = FixedLimit()

    def _check_indexing(self):
        """Google wants nothing kept out of HPACK's table."""

    def _serve(self, request):
        service = self.service
        if request.path == "/token":
            return self._give_token(request)
        try:
            service.authenticated(request)
            take = service.examined(request)
        except Refusal as refusal:
            return self.refuse(request, refusal)
        rule = service.script.pick(request)
        if rule:
            self.actions.perform(rule, request, take)
        else:
            self.accept(request, take, self.pause())

    def _give_token(self, request):
        try:
            status, body = self.service.token_for(request)
        except NoToken as refusal:
            if refusal.violation:
                self.violation(f"{refusal.error}: {refusal.violation}", request)
            status, body = 400, {"error": refusal.error, "error_description": refusal.description}
        self.send(request, status, body=body)

    def note(self, request, status, reason=None, processed=False, answered=True):
        self.service.log.push(request, {
            "environment": "fcm", "status": status, "reason": reason, "processed": processed, "answered": answered,
            "size": len(request.body), **request.facts})

    def refuse(self, request, refusal, retry_after=None):
        if refusal.violation:
            self.violation(f"{refusal.reason}: {refusal.violation}", request)
        self.note(request, refusal.status, refusal.reason)
        error = {"code": refusal.status, "message": "Requested entity was not found.", "status": RPC.get(refusal.status, "UNKNOWN")}
        if refusal.reason == "INVALID_ARGUMENT token":
            error["message"] = "The registration token is not a valid FCM registration token"
            error["details"] = [{"@type": FCM_ERROR, "errorCode": "INVALID_ARGUMENT"}]
        elif refusal.reason not in ("UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND"):
            error["details"] = [{"@type": FCM_ERROR, "errorCode": refusal.reason}]
        extra = [("retry-after", str(retry_after))] if retry_after is not None else []
        self.send(request, refusal.status, extra, {"error": error})

    def send(self, request, status, headers=(), body=None):
        if body is None:
            body = {"name": f"projects/{self.service.project}/messages/0:{request.number}"}
        date = email.utils.formatdate(self.service.now, usegmt=True)
        headers = [(":status", str(status)), ("content-type", "application/json; charset=UTF-8"), ("date", date), *headers]
        self.h2.send_headers(request.stream, headers)
        self.h2.send_data(request.stream, json.dumps(body).encode(), end_stream=True)
        self.finish(request)
