"""A stand-in for GoTrue and PostgREST: users and rows over HTTP, as far as the suites ask for them."""

import datetime
import json
import threading
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import psycopg
from psycopg import sql as syntax

from support.ports import free_port

#: The secret and the `anon` key of each project on a developer's machine (`supabase start`); the suites have them written into them.
SECRET = "super-secret-jwt-token-with-at-least-32-characters-long"
ANON_KEY = jwt.encode({"iss": "supabase-demo", "role": "anon", "exp": 1983812996}, SECRET, algorithm="HS256")
SERVICE_KEY = jwt.encode({"iss": "supabase-demo", "role": "service_role", "exp": 1983812996}, SECRET, algorithm="HS256")
USERS = """
    create table auth.users (id uuid primary key default gen_random_uuid(), email text unique, password text);
    grant usage on schema auth to anon, authenticated, service_role
"""


class Problem(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Project:
    def __init__(self, connect):
        """`connect` opens a connection to the project's database."""
        self._connect, self.port = connect, free_port()
        self._own = threading.local()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), lambda *arguments: Handler(self, *arguments))
        self._server.daemon_threads = True

    @property
    def sql(self):
        """This thread's connection: an answer that waits for a connection to open or close comes later than PostgREST's."""
        if not hasattr(self._own, "connection"):
            self._own.connection = self._connect()
        return self._own.connection

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    # GoTrue

    def create_user(self, email, password):
        try:
            (id,) = self.sql.execute("insert into auth.users (email, password) values (%s, %s) returning id", [email, password]).fetchone()
        except psycopg.errors.UniqueViolation:
            raise Problem(422, "User already registered") from None
        return self._user(id, email)

    def sign_in(self, email, password):
        found = self.sql.execute("select id from auth.users where email = %s and password = %s", [email, password]).fetchone()
        if not found:
            raise Problem(400, "Invalid login credentials")
        return self.session(self._user(found[0], email))

    def session(self, user):
        now = int(time.time())
        claims = {"sub": user["id"], "role": "authenticated", "aud": "authenticated", "email": user["email"], "iat": now, "exp": now + 3600,
                  "session_id": str(uuid.uuid4())}
        return {"access_token": jwt.encode(claims, SECRET, algorithm="HS256"), "token_type": "bearer", "expires_in": 3600, "expires_at": now + 3600,
                "refresh_token": uuid.uuid4().hex, "user": user}

    @staticmethod
    def _user(id, email):
        now = datetime.datetime.now(datetime.UTC).isoformat()
        return {"id": str(id), "aud": "authenticated", "role": "authenticated", "email": email, "email_confirmed_at": now, "created_at": now,
                "updated_at": now, "app_metadata": {"provider": "email"}, "user_metadata": {}, "identities": []}

    # PostgREST

    def change_rows(self, method, table, query, claims, rows=()):
        """Inserts, updates or deletes as the token's role, under its policies; the rows after it, as JSON."""
        name = syntax.Identifier("public", table)
        with self.sql.transaction():
            self.sql.execute("select set_config('role', %s, true), set_config('request.jwt.claims', %s, true)", [claims["role"], json.dumps(claims)])
            conditions, values = self._conditions(query)
            columns = list(rows[0]) if rows else []
            listed = syntax.SQL(", ").join(map(syntax.Identifier, columns))
            record = syntax.SQL("select {} from jsonb_populate_recordset(null::{}, %s)").format(listed, name)
            returning = syntax.SQL("select to_jsonb(changed) from changed") if "select" in query else syntax.SQL("select null where false")
            written = {
                "POST": syntax.SQL("insert into {} ({}) {}").format(name, listed, record),
                "PATCH": syntax.SQL("update {} set ({}) = ({}){}").format(name, listed, record, conditions),
                "DELETE": syntax.SQL("delete from {}{}").format(name, conditions)}[method]
            given = [json.dumps(list(rows))] if rows else []
            if "select" in query:
                written = syntax.SQL("with changed as ({} returning *) {}").format(written, returning)
            found = self.sql.execute(written, given + values)
            return [row for row, in found.fetchall()] if "select" in query else []

    @staticmethod
    def _conditions(query):
        conditions, values = [], []
        for column, texts in query.items():
            for text in texts if column not in ("select", "columns") else ():
                operator, _, value = text.partition(".")
                if operator == "eq":
                    conditions.append(syntax.SQL("{}::text = %s").format(syntax.Identifier(column)))
                    values.append(value)
                elif operator == "in":
                    conditions.append(syntax.SQL("{}::text = any (%s)").format(syntax.Identifier(column)))
                    values.append([part.strip('"') for part in value.strip("()").split(",")])
                else:
                    raise Problem(400, f"this stand-in has no {operator}")
        return (syntax.SQL(" where ") + syntax.SQL(" and ").join(conditions) if conditions else syntax.SQL("")), values


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, project, *arguments):
        self.project = project
        super().__init__(*arguments)

    def log_message(self, *_):
        pass

    def _answer(self):
        path, _, text = self.path.partition("?")
        query = urllib.parse.parse_qs(text)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        given = json.loads(body) if body else None
        try:
            status, answer = self._route(path, query, given)
        except Problem as problem:
            status, answer = problem.status, {"code": problem.status, "error_code": "stand_in", "msg": str(problem), "message": str(problem)}
        except psycopg.Error as error:
            status, answer = (403 if error.sqlstate == "42501" else 400), {"code": error.sqlstate, "message": str(error), "details": None, "hint": None}
        data = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer

    def _claims(self):
        presented = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("apikey", "")
        try:
            return jwt.decode(presented, SECRET, algorithms=["HS256"], options={"verify_aud": False})
        except jwt.InvalidTokenError as error:
            raise Problem(401, str(error)) from None

    def _route(self, path, query, given):
        project = self.project
        match path.split("/")[1:]:
            case ["auth", "v1", "signup"]:
                return 200, project.session(project.create_user(given["email"], given["password"]))
            case ["auth", "v1", "token"]:
                return 200, project.sign_in(given["email"], given["password"])
            case ["auth", "v1", "logout"]:
                return 204, None
            case ["auth", "v1", "admin", "users"]:
                if self._claims()["role"] != "service_role":
                    raise Problem(403, "User not allowed")
                return 200, project.create_user(given["email"], given["password"])
            case ["rest", "v1", table] if self.command in ("POST", "PATCH", "DELETE"):
                rows = given if isinstance(given, list) else [given] if given else []
                changed = project.change_rows(self.command, table, query, self._claims(), rows)
                if "select" not in query:
                    return 201 if self.command == "POST" else 204, None
                if "select" in query and query["select"] != ["*"]:
                    names = query["select"][0].split(",")
                    changed = [{name: row[name] for name in names} for row in changed]
                single = "vnd.pgrst.object" in self.headers.get("Accept", "")
                return 201 if self.command == "POST" else 200, changed[0] if single else changed
        raise Problem(404, f"this stand-in has no {self.command} {path}")
