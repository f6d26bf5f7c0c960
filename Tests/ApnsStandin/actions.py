"""What a rule of the script does to a request."""

import asyncio

from refusal import Refusal

#: "No stream is refused yet" (RFC 9113, 6.8).
NO_LIMIT = 2**31 - 1
REFUSED_STREAM = 7
#: Seconds between the two GOAWAYs of a graceful end.
NOTICE = 0.05


class Actions:
    def __init__(self, connection):
        self.connection = connection

    def perform(self, rule, request, take):
        getattr(self, rule.action)(rule.do, request, take)

    def answer(self, do, request, take):
        refusal = Refusal(do["answer"], timestamp=do.get("timestamp"), status=do.get("status"))
        self.connection.refuse(request, refusal, do.get("retry_after"))

    def delay(self, do, request, take):
        self.connection.accept(request, take, do["delay"])

    def stall(self, do, request, take):
        self._withhold(do["stall"] == "after", request, take, "stall")

    def reset(self, do, request, take):
        self._withhold(do.get("processed", False), request, take, "reset")
        self.connection.h2.reset_stream(request.stream, do["reset"])
        self.connection.finish(request)

    def abort(self, do, request, take):
        self._withhold(do["abort"] == "after", request, take, "abort")
        self.connection.abort()

    def goaway(self, do, request, take):
        """`after`: this request is the last one, and it and those before are answered. `before`: it is the first that is
        not served. `graceful`: a notice first, and what comes in the meantime is served. `withheld`: it was taken, and
        its answer never comes."""
        how, reason, connection = do["goaway"], do.get("reason"), self.connection
        if how == "before":
            self._withhold(False, request, take, "goaway")
            if request.stream < connection.last_taken:
                # Bodies come in any order: this one's stream is below one that was served, and is refused by itself.
                connection.h2.reset_stream(request.stream, REFUSED_STREAM)
                connection.finish(request)
            connection.goaway(request.stream - 2, reason)
        elif how == "after":
            connection.goaway(request.stream, reason)
            connection.accept(request, take, connection.pause())
        elif how == "withheld":
            self._withhold(True, request, take, "goaway")
            connection.goaway(request.stream, reason)
            asyncio.get_running_loop().call_later(NOTICE, connection.abort)
        else:
            connection.goaway(NO_LIMIT, reason, final=False)
            connection.accept(request, take, connection.pause())
            asyncio.get_running_loop().call_later(NOTICE, self._end)

    def _end(self):
        connection = self.connection
        if not connection.transport.is_closing() and connection.last_stream is None:
            connection.goaway(connection.h2.highest_inbound_stream_id)

    def _withhold(self, processed, request, take, why):
        """No answer, ever."""
        connection = self.connection
        if processed:
            connection.take(request, take)
        connection.note(request, None, why, processed=processed, answered=False)
