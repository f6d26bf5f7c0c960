"""Broken configurations, made by a seed from the table of settings that the binary prints: new settings are in by themselves."""

import itertools
import json
import random
from dataclasses import dataclass, field

#: A value that a setting of this kind refuses; kinds that take any text have none.
WRONG = {
    "toggle": ["maybe", "2", "truee"], "choice": ["loud", "nothing of the kind"], "choices": ["HS256, none", "!"],
    "host": ["300.0.0.1", "two words", "http://127.0.0.1", "127.0.0.1:4000", "a..b"],
    "name": ["two words", "x" * 64, "a/b"], "connection": ["nonsense", "http://db/chat"],
    "secret": ["short"], "secrets": ["short", f"{'x' * 40} short"],
    "url": ["ftp://keys", "https://", "https://keys:99999/", "keys.example.com", "https://a b"],
    "windows": ["room=1/2", "room=1/2/999", "room"], "columns": ["a.b", "a..b", "a.b.c.d"], "tables": ["messages", "a.b.c"],
    "statement": ["select 1", "select $1, $2"], "query": ["select 1"], "bundle": ["com.example app", "x" * 300],
    "code": ["short", "ABCDE-1234"], "pem": ["AuthKey.p8", "-----BEGIN CERTIFICATE-----"], "json": ["[1]", "text"],
    "mode": ["0680", "rw-rw----", "60"], "networks": ["10.0.0.0/33", "10.0.0", "proxy.example.com"],
    "origins": ["app.example.com", "https://app.example.com/", "*"],
}
#: Texts that take variables, where a brace has to be closed.
TEMPLATES = ("alerts.title", "alerts.body", "alerts.sound", "live_activity.topic", "notify.channels")
#: Comments and settings that are right, before what is wrong.
FILLING = ("# a comment", "", "# port: 1", "node.name: roost", "limits.private_only: true", "drain.delay_seconds: 0")
SECRET = "the-secret-of-the-broken-configurations"
PEM = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----"


@dataclass
class Broken:
    """What is wrong, how it is set, and what the sentence must name. `FILE` stands for the file's path."""
    what: str
    names: list
    text: str = ""
    variables: dict = field(default_factory=dict)
    arguments: list = field(default_factory=list)
    status: int = 78


class Maker:
    def __init__(self, settings, seed, folder):
        self.settings, self.random, self.folder = settings, random.Random(seed), folder
        self.keys = [setting["key"] for setting in settings]

    def all(self):
        return [
            *self.wrong_values(), *self.wrong_shapes(), *self.unknown_keys(), *self.bad_yaml(),
            *self.contradictions(), *self.bad_files(), *self.bad_keys(), *self.bad_flags(), *self.too_little()]

    # Values

    def wrong_values(self):
        """Of every setting that can be wrong, one in the file and one in the environment."""
        for setting in self.settings:
            key, wrong = setting["key"], self.wrong(setting)
            if wrong is None:
                continue
            text, line = self.file(key, json.dumps(wrong))
            yield Broken(f"{key}: {wrong!r}", [f"FILE:{line}: ", key], text)
            if key not in TEMPLATES:
                yield Broken(f"{setting['variable']}={wrong!r}", [setting["variable"]], variables={setting["variable"]: wrong})

    def wrong(self, setting):
        if setting["kind"] == "integer":
            near = [str(setting["least"] - 1), str(setting["most"] + 1)]
            return self.random.choice(near + ["many", "1.5", "0x10", "1e3", "1 2", "9" * 30, "-"])
        if setting["key"] in TEMPLATES:
            return self.random.choice(["{", "}", "{sender_name", "a } b"])
        return self.random.choice(WRONG[setting["kind"]]) if setting["kind"] in WRONG else None

    def wrong_shapes(self):
        """A list or keys where a value belongs, and the other way round."""
        # An object may be written as keys and values.
        settings = [setting for setting in self.settings if setting["kind"] != "json"]
        for setting in self.random.sample(settings, min(30, len(settings))):
            key = setting["key"]
            shape, said = self.random.choice([
                ("[1, 2]", "list"), ("\n      - a\n      - b", "list"), ("{a: 1}", "no keys below"), ("[[1]]", "list"),
                ("\n      a: 1", "no keys below")])
            text, line = self.file(key, shape)
            if said == "no keys below":
                # The place is that of the key below, if it is on a line of its own.
                names = [key, said] if shape.startswith("{") else [f"FILE:{line + 1}: ", key, said]
            else:
                names = [f"FILE:{line}: ", key, said]
            yield Broken(f"{key} is {shape!r}", names, text)
        sections = sorted({key.split(".")[0] for key in self.keys if "." in key})
        for section in self.random.sample(sections, min(8, len(sections))):
            yield Broken(
                f"the section {section} has a value", ["FILE:1: ", f"{section} is a section"],
                f"{section}: {self.random.choice(['1', 'text', '[a]'])}\n")

    # Names

    def unknown_keys(self):
        for _ in range(30):
            key = self.random.choice(self.keys)
            wrong = self.misspelt(key, self.keys)
            text, line = self.file(wrong, "1")
            # The slip may be nearer to another one: some name is to be offered.
            yield Broken(f"{wrong} for {key}", [f"FILE:{line}: ", f"there is no key {wrong}; did you mean "], text)
        for key in ("database.colour", "nothing", "nothing.at.all", "http.level", "port"):
            text, line = self.file(key, "1")
            yield Broken(f"the key {key}", [f"FILE:{line}: ", f"there is no key {key}; "], text)

    def misspelt(self, name, names):
        """A slip of the finger that makes no other name, no section, and nothing below a setting."""
        while True:
            at = self.random.randrange(len(name))
            letter = self.random.choice("abcdefghijklmnopqrstuvwxyz") if name.islower() else self.random.choice("ABCDEFGHXYZ")
            wrong = self.random.choice([
                name[:at] + name[at + 1:], name[:at] + letter + name[at:], name[:at] + letter + name[at + 1:],
                name[:at] + name[at:at + 2][::-1] + name[at + 2:]])
            is_clear = wrong not in names and not any(n.startswith(wrong + ".") or wrong.startswith(n + ".") for n in names)
            if is_clear and all(part for part in wrong.split(".")):
                return wrong

    # Files

    def file(self, key, value):
        """A file that sets a key to a value as YAML has it, and the key's line."""
        lines = self.random.sample(FILLING, self.random.randrange(4))
        lines = [line for line in lines if not line.startswith(key + ":")]
        parts = key.split(".")
        if self.random.random() < 0.3:
            return "\n".join([*lines, f"{key}: {value}"]) + "\n", len(lines) + 1
        lines += [f"{'  ' * depth}{part}:" for depth, part in enumerate(parts[:-1])]
        return "\n".join([*lines, f"{'  ' * (len(parts) - 1)}{parts[-1]}: {value}"]) + "\n", len(lines) + 1

    def bad_yaml(self):
        secret = f"{SECRET}-in-the-file"
        for text, line in (
                ("http:\n  port: 1: 2\n", 2), ("http:\n\tport: 1\n", 2), ("loops: 1\n http: 2\n", 2), ("http: [\n", None),
                ("http: {port: 1\n", None), ("http:\n  host: \"a\n", None), ("http:\n  host: 'a\n", None), ("loops: @\n", 1),
                ("loops: `1\n", 1), ("loops: *one\n", 1), ("loops: &a\n  b\n c\n", None),
                ("%YAML 9.9\nloops: 1\n", None), ("loops: 1\n---\nloops: 2\n", None), ("loops: 1\nloops: 2\n", 2),
                ("http:\n  port: 1\nhttp:\n  host: a\n", 3), ("http.port: 1\nhttp:\n  port: 2\n", 3), ("loops: \"\\q\"\n", 1),
                ("}\n", 1), ("? [a]\n: 1\n", None), (f"jwt:\n  secret: \"{secret}\n", None), (f"jwt:\n  secret: {secret}: x\n", 2),
                (f"jwt:\n  secret: @{secret}\n", 2), ("loops: 1\n\x00\n", None), ("loops\n", None), ("- loops: 1\n", None),
                ("text\n", None), ("1\n", None)):
            yield Broken(f"YAML {text!r}", [f"FILE:{line}: " if line else "FILE"], text)
        yield Broken("no UTF-8", ["FILE", "UTF-8"], b"node.name: \xff\xfe\n")
        yield Broken("UTF-16", ["FILE"], "loops: 1\n".encode("utf-16"))
        yield Broken("a large file", ["FILE", "1 MiB"], "# nothing\n" * 200_000)

    def bad_files(self):
        for path, said in ((f"{self.folder}/nowhere.yaml", "does not exist"), (str(self.folder), "folder"), ("/dev/zero", "no file"),
                           (f"{self.folder}/empty/no/such.yaml", "does not exist")):
            yield Broken(f"--config {path}", [path, said], arguments=["--config", path])
            yield Broken(f"ROOST_CONFIG={path}", [path, said], variables={"ROOST_CONFIG": path})

    # What goes together

    def contradictions(self):
        for text, names in (
                ("timeouts:\n  ping_after: 90\n", ["timeouts.ping_after (90, FILE:2)", "timeouts.idle"]),
                ("timeouts:\n  idle: 20\n", ["timeouts.idle (20, FILE:2)"]),
                ("limits:\n  message_bytes: 2048\n", ["limits.message_bytes (2048, FILE:2)", "limits.payload_bytes"]),
                ("limits:\n  payload_bytes: 6000000\n", ["limits.payload_bytes (6000000, FILE:2)"]),
                ("http:\n  port: 4001\n", ["http.port (4001, FILE:2)", "ops.port"]),
                ("ops:\n  port: 4000\n", ["ops.port (4000, FILE:2)"]),
                ("live_activity:\n  ceiling_milliseconds: 5\n", ["live_activity.ceiling_milliseconds (5, FILE:2)"]),
                ("jwt:\n  algorithms: RS256, ES256\n", ["jwt.algorithms (", "FILE:2)", "jwt.secret"]),
                ("apns:\n  topic: com.example.app\n", ["apns.topic is set (FILE:2)", "apns.team_id"]),
                ("apns:\n  team_id: TEAM123456\n  key_id: KEY1234567\n", ["apns.team_id is set (FILE:2)", "apns.topic"])):
            yield Broken(text.replace("\n", " "), names, text)
        for variables, names in (
                ({"ROOST_TIMEOUTS_PING_AFTER": "60"}, ["ROOST_TIMEOUTS_PING_AFTER"]), ({"ROOST_OPS_PORT": "4000"}, ["ROOST_OPS_PORT"]),
                ({"ROOST_APNS_KEY_ID": "KEY1234567"}, ["apns.key_id is set (ROOST_APNS_KEY_ID)"]),
                ({"ROOST_TLS_KEY": "key.pem"}, ["tls.key (ROOST_TLS_KEY) is set", "tls.certificate"]),
                ({"IOS_LIVE_ACTIVITY_TEAM_ID": "TEAM123456"}, ["IOS_LIVE_ACTIVITY_TEAM_ID"]),
                ({"ROOST_JWT_SECRET": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0"}, ["jwt.secret (ROOST_JWT_SECRET) is a PEM key"])):
            yield Broken(str(variables), names, variables=variables)

    def bad_keys(self):
        """Files of keys, certificates, and what is no key."""
        apns = {"ROOST_APNS_TOPIC": "com.example.app", "ROOST_APNS_TEAM_ID": "TEAM123456", "ROOST_APNS_KEY_ID": "KEY1234567"}
        pems = {"garbage": PEM.format("MIGTgarbage"), "empty": PEM.format(""), "no base 64": PEM.format("!!!!"),
                "another kind": PEM.format("MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC"),
                "half": "-----BEGIN PRIVATE KEY-----\nMIGT"}
        for what, pem in pems.items():
            yield Broken(f"a PEM: {what}", ["ROOST_APNS_PRIVATE_KEY", "private key"], variables={**apns, "ROOST_APNS_PRIVATE_KEY": pem})
        for certificate, key in itertools.product((PEM.format("x"), "x", None, ...), ("x", None)):
            pair = {"ROOST_TLS_CERTIFICATE": self.made(certificate), "ROOST_TLS_KEY": self.made(key)}
            yield Broken(f"tls with {pair}", [pair["ROOST_TLS_CERTIFICATE"], "tls.certificate"], variables=pair)
        for content in ("", "{", "[]", "{\"keys\": 1}", "{\"keys\": []}", "{\"keys\": [{}]}", PEM.format("x"), "x" * 300_000, None, ...):
            path = self.made(content)
            yield Broken(f"jwks.file with {str(content)[:20]!r}", [path, "jwks.file"], variables={"ROOST_JWKS_FILE": path})
            text, line = self.file("jwks.file", json.dumps(path))
            yield Broken(f"jwks.file in the file, with {str(content)[:20]!r}", [path, "jwks.file"], text)

    def made(self, content, _numbers=itertools.count(1)):
        """A file with this content; None: there is none, `...`: a folder."""
        path = self.folder / f"made-{next(_numbers)}"
        if content is ...:
            path.mkdir()
        elif content is not None:
            path.write_text(content)
        return str(path)

    # The command line

    def bad_flags(self):
        for flag, value in (("--http-port", "x"), ("--http-port", "0"), ("--ops-port", "70000"), ("--ops-port", "4000"),
                            ("--loops", "-"), ("--loops", "2000"), ("--log-level", "loud"), ("--jwt-secret", "short"),
                            ("--database-url", "nonsense"), ("--http-host", "a b")):
            yield Broken(f"{flag} {value!r}", [flag], arguments=[flag + "=" + value])
        for arguments in (["--htp-port", "1"], ["--http_port", "1"], ["--nonsense"], ["extra"], ["--http-port"], ["--http-port="], ["-x"]):
            yield Broken(f"the command line {arguments}", [], arguments=arguments, status=64)

    def too_little(self):
        yield Broken("no database", ["database.url", "ROOST_DATABASE_URL"], variables={"ROOST_DATABASE_URL": ""})
        yield Broken("no keys", ["jwt.secret", "ROOST_JWT_SECRET"], variables={"ROOST_JWT_SECRET": ""})
        for url in ("postgres://u:p@ss:word@db/chat", "postgres://db:99999/chat", "postgres://db:port/chat", "postgres://db/chat?colour=red",
                    "host=db port=0", "hosst=db", "postgres://[::1/chat", "host='db", "postgres://db/%zz"):
            yield Broken(f"the database {url}", ["ROOST_DATABASE_URL"], variables={"ROOST_DATABASE_URL": url})
            text, line = self.file("database.url", json.dumps(url))
            yield Broken(f"the database {url} in the file", [f"FILE:{line}: "], text, variables={"ROOST_DATABASE_URL": ""})
