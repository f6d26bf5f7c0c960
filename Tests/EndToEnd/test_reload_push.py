"""Texts of pushes change with a reload; whom they concern takes a restart."""

import pathlib
import signal

from support.chat import ADA, GRACE
from support.deadline import eventually
from support.push_hub import Phone, PushHub


async def test_the_text_of_an_alert_is_reloaded(cluster):
    async with PushHub(cluster, "reload_push") as chat:
        with chat.sql() as sql:
            phone = await Phone(chat, GRACE).register()
            chat.say(sql, ADA, "one")
            await eventually(lambda: phone.alerts, what="the first alert", every=0.05)
            file = pathlib.Path(chat.hub.folder, "config/roost.yaml")
            file.parent.mkdir()
            file.write_text("alerts:\n  body: 'New: {preview}'\n  tables: public.notes\n")
            chat.hub.process.send_signal(signal.SIGHUP)
            await eventually(lambda: "alerts.tables needs a restart" in chat.hub.log, what="the end of the reload")
            assert "The configuration was reloaded: alerts.body." in chat.hub.log
            chat.say(sql, ADA, "two")
            await eventually(lambda: len(phone.alerts) == 2, what="the second alert", every=0.05)
            first, second = ([push["payload"]["aps"]["alert"]["body"] for push in chat.apns.taken_by(phone.device)])
            assert first.endswith(": one") and second == "New: two"
