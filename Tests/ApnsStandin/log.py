"""What happened, in memory and, line by line, in a file that outlives this process.

A push is in the file before its answer is on the wire, so that what a killed process has answered is never missing.
"""

import collections
import json
import os
import time

#: Records that are kept in memory; the file has all.
KEPT = 200_000


class Log:
    def __init__(self, path=None, show=None):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if path else None
        self._lines, self._show = [], show
        self._number = 0
        self.clear()

    def clear(self):
        self.records = collections.deque(maxlen=KEPT)
        self.violations = collections.deque(maxlen=KEPT)
        self.counts = collections.Counter()
        self.violation_count = 0

    def _write(self, record):
        if self._file is not None:
            self._lines.append(json.dumps(record, separators=(",", ":")))

    def flush(self):
        """Called before anything is answered."""
        if self._lines:
            os.write(self._file, ("\n".join(self._lines) + "\n").encode())
            self._lines.clear()

    def push(self, request, what):
        """`what` was decided: status, reason, timestamp, `processed` (it counts as shown on the phone), `answered`."""
        self._number += 1
        record = {
            "kind": "push", "n": self._number, "at": round(time.time(), 4), "connection": request.connection.name,
            "stream": request.stream, "method": request.method, "path": request.path,
            "headers": {name: value for name, value in request.headers.items()
                        if name != "authorization" and not name.startswith(":")},
            **what,
        }
        request.record = record
        self.records.append(record)
        self.counts[f"{record['status']} {record['reason']}" if record["reason"] else f"{record['status']}"] += 1
        self._write(record)
        if self._show:
            self._show(record)

    def answered(self, request):
        """Of one that was not answered at once."""
        request.record["answered"] = True
        request.record["answered_at"] = round(time.time(), 4)
        self._write({"kind": "answer", "n": request.record["n"], "at": request.record["answered_at"]})

    def violation(self, what, connection, request=None):
        self.violation_count += 1
        record = {"kind": "violation", "what": what, "connection": connection, "at": round(time.time(), 4),
                  "id": request.headers.get("apns-id") if request else None}
        self.violations.append(record)
        self._write(record)
        if self._show:
            self._show(record)

    def connection(self, name, event, **more):
        record = {"kind": "connection", "connection": name, "event": event, "at": round(time.time(), 4), **more}
        self.records.append(record)
        self._write(record)
        self.flush()
