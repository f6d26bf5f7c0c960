"""Tests/WebPushStandin as a process of its own, what it saw, and browsers that subscribe at it."""

import os
import subprocess
import threading
from urllib.parse import quote

from support.apns import APNs, PYTHON
from support.deadline import until
from support.hub import BINARY, ROOT
from support.push_hub import PushHub, Phone

SUBJECT = "mailto:ops@example.com"


def new_keys():
    """A key pair by `roost push keys`: what is configured, and what pages subscribe for."""
    done = subprocess.run([BINARY, "push", "keys"], check=True, capture_output=True, text=True)
    private, public = [line.partition(": ")[2].strip() for line in done.stdout.splitlines()]
    return private, public


class WebPush(APNs):
    """The stand-in on ports that it keeps over restarts, and a key for the hub."""

    def __init__(self, *options, networks="127.0.0.0/8"):
        super().__init__(*options)
        #: Of the operator's own (web_push.networks).
        self.networks = networks
        self.private_key, self.public_key = new_keys()

    def start(self):
        command = [PYTHON, ROOT / "Tests/WebPushStandin", "--port", self.port, "--control-port", self.control_port, "--folder", self.folder,
                   "--log", self.log_file, "--quiet", *self.options]
        errors = open(f"{self.folder}/stderr", "ab")
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        errors.close()
        listening = threading.Event()
        threading.Thread(target=self._read, args=(self.process, listening), daemon=True).start()
        until(lambda: listening.is_set() or self.process.poll() is not None, what="`listening` of the Web Push stand-in")
        assert listening.is_set(), f"the Web Push stand-in ended: {self.errors[-2000:]}"
        return self

    def _read(self, process, listening):
        for line in process.stdout:
            word, _, rest = line.partition(": ")
            if word == "Web Push stand-in":
                self.port = int(rest.strip().rpartition(":")[2])
            elif word == "control":
                self.control_port = int(rest.split()[0].rpartition(":")[2])
            elif line == "listening\n":
                listening.set()

    @property
    def environment(self):
        return {
            "ROOST_WEB_PUSH_PRIVATE_KEY": self.private_key, "ROOST_WEB_PUSH_SUBJECT": SUBJECT,
            "ROOST_WEB_PUSH_NETWORKS": self.networks, "ROOST_WEB_PUSH_CA_FILE": self.ca_file,
        }

    def subscribe(self, count=None, key=None):
        """A subscription as a page has it, or a list of so many."""
        found = self.call("POST", "/subscriptions", {"count": count or 1, "key": key or self.public_key})
        return found if count else found[0]

    def gone(self, subscription, status=410):
        self.call("POST", "/tokens", {name_of(subscription): {"gone": status}})

    def back(self, subscription):
        self.call("POST", "/tokens", {name_of(subscription): None})

    def answers_to(self, subscription):
        return [record["status"] for record in self.pushes if record.get("token") == name_of(subscription)]

    def messages(self, subscription):
        """The plain text of each message that reached this browser, as the browser decrypted it."""
        return [record["payload"] for record in self.taken_by(name_of(subscription))]


def name_of(subscription):
    return subscription["endpoint"].rpartition("/")[2]


class Browser(Phone):
    """A browser in the place of a phone: its subscription is what it registers."""

    def __init__(self, chat, who, session=None, subscription=None):
        super().__init__(chat, who, session)
        self.subscription = subscription or chat.apns.subscribe()
        self.device = name_of(self.subscription)

    async def ask_to_register(self, **more):
        return await self.api("POST", "/api/devices", {"kind": "web", "subscription": {**self.subscription, **more}})

    async def register(self, **more):
        answer = await self.ask_to_register(**more)
        assert answer.status == 200, answer.body
        return self

    async def unregister(self):
        answer = await self.api("DELETE", f"/api/devices?device={quote(self.subscription['endpoint'], safe='')}")
        assert answer.status == 204, answer.body

    @property
    def messages(self):
        return self.chat.apns.messages(self.subscription)


class WebPushHub(PushHub):
    """A hub that pushes to browsers alone."""

    def __init__(self, cluster, name, networks="127.0.0.0/8", **settings):
        super().__init__(cluster, name, WebPush(networks=networks), **settings)
        self.owns_apns = True
