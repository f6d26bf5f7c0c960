"""The control port of the stand-in for FCM: HTTP/1.1 and JSON, for tests and for curl."""

from control import Control

HELP = """FCM stand-in: the control port
GET  /summary      violations, answers by status and reason, connections, access tokens granted
GET  /log?after=n  what came (records after the nth)
GET  /violations   what the client did wrong
POST /tokens       {"<registration token>": {"gone": true, "sender": true} or null}
POST /script       a rule or a list of rules (see ../ApnsStandin/script.py; "answer" is an FCM error code); DELETE /script forgets them
POST /settings     {"delay", "speed", "clock_offset", "token_life", "token_faults": [statuses of the next answers to requests for tokens]}
POST /revoke       no access token that was given is good any more
POST /connections  {"do": "goaway" | "abort" | "freeze" | "vanish" | "refuse", "seconds"?: 1}
POST /reset        forget what it was told and what it saw
"""
SETTINGS = "delay", "speed", "clock_offset", "token_life", "token_faults"


class FcmControl(Control):
    async def _help(self, told, query):
        return HELP

    async def _tokens(self, told, query):
        for token, facts in told.items():
            self.service.devices[token] = facts or {}
        return {"known": len(self.service.devices)}

    async def _settings(self, told, query):
        for name, value in told.items():
            if name not in SETTINGS:
                raise ValueError(f"there is no setting {name}")
            setattr(self.service, name, value)
        return {name: getattr(self.service, name) for name in SETTINGS}

    async def _revoke(self, told, query):
        self.service.revoke()
        return {}

    ROUTES = {
        **Control.ROUTES, ("GET", "/"): _help, ("POST", "/tokens"): _tokens, ("POST", "/settings"): _settings,
        ("POST", "/revoke"): _revoke,
    }
