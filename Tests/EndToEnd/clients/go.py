"""A client for Go that is translated from realtime-js (2026-10).

Read: stored file 68398382739 (its repository is not named by the index). Its joins can wait for their row changes, as supabase-js 2.113's:
`postgres_changes_options`; the deadline of such a join is the wait and a grace of its own.

supabase-community/realtime-go 73d39dc, the other one, expects a key `type` in what comes, which neither server sends: it hears nothing anywhere.
"""

from clients.channel import Channel
from clients.emulator import Emulator

WAIT = 15


class GoChannel(Channel):
    patience = WAIT + 5

    def config(self):
        config = super().config()
        if self.wishes.rows:
            config["postgres_changes_options"] = {"wait": True, "timeout": WAIT * 1000}
        return config


class Go(Emulator):
    name, version_read, sources = "a realtime-js for Go", "of 2026", "one file; its repository is not known"
    make_channel = GoChannel
