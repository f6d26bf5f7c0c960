"""Tests/FcmStandin as a process of its own, and what it saw."""

import collections
import secrets
import sys

from support.apns import APNs
from support.hub import ROOT

PROJECT = "roost-standin"


def new_token():
    """As the Firebase SDK gives it to an app."""
    return f"{secrets.token_urlsafe(16)}:APA91b{secrets.token_urlsafe(99)}"


class FCM(APNs):
    """The stand-in on ports that it keeps over restarts, with a service account and a log that outlive it."""

    TITLE = "FCM stand-in"

    @property
    def command(self):
        return [
            sys.executable, ROOT / "Tests/FcmStandin", "--port", self.port, "--control-port", self.control_port, "--folder", self.folder,
            "--log", self.log_file, "--project", PROJECT, "--quiet", *self.options]

    @property
    def account_file(self):
        return f"{self.folder}/service-account.json"

    @property
    def environment(self):
        """What the hub and `roost push` are told about it."""
        return {"ROOST_FCM_URL": self.url, "ROOST_FCM_CA_FILE": self.ca_file, "ROOST_FCM_SERVICE_ACCOUNT": self.account_file}

    def revoke(self):
        self.call("POST", "/revoke")

    def asked_of(self, token):
        """What was answered about this device, in order."""
        return [record["reason"] or record["status"] for record in self.pushes if record.get("token") == token]

    def data(self, token):
        """The `data` of each push that reached this device."""
        return [record["payload"].get("data", {}) for record in self.taken_by(token)]

    def times(self, key):
        """What reached devices, by token: the values of a member of `data`, in order."""
        found = collections.defaultdict(list)
        for record in self.taken:
            found[record["token"]].append(record["payload"]["data"][key])
        return found
