"""An application's server for the sample chat: POST a message as JSON, and it is a row. Some answers get lost."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg


class ChatServer:
    """On a port of its own, until `close`. It writes as `sender`; of every `loses` answers one is not sent."""

    def __init__(self, database_url, sender, loses=10):
        self.sender, self.loses = sender, loses
        self.requests = self.lost = self.repeats = 0
        self._lock = threading.Lock()
        self._connection = psycopg.connect(database_url, autocommit=True)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    is_answered = owner._write(row)
                except psycopg.errors.CheckViolation:
                    return self._answer(400)
                if not is_answered:
                    # Committed, and nobody is told.
                    self.close_connection = True
                    return
                self._answer(200)

            def _answer(self, status):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # Connections that were cut.

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _write(self, row):
        """Whether the answer is sent."""
        with self._lock:
            self.requests += 1
            done = self._connection.execute(
                "insert into messages (conversation_id, sender_id, body, local_id) values (%s, %s, %s, %s) "
                "on conflict (sender_id, local_id) do nothing",
                [row["conversation_id"], self.sender, row["body"], row["local_id"]])
            self.repeats += done.rowcount == 0
            if done.rowcount == 1 and self.requests % self.loses == 0:
                self.lost += 1
                return False
            return True

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._connection.close()
