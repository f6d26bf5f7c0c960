"""Ten stories of an app's day. Each is played by all clients at once: `begin` by each, `happen` to all, `end` by each."""

import asyncio

from clients.channel import Wishes
from support.deadline import eventually
from support.tokens import token

#: Beyond what the kit's hub takes (`limits.payload_bytes`).
TOO_LARGE = 30_000


class Story:
    name = ""
    #: Whether a socket is lost in it: what was not proven is brought again, at least once.
    may_repeat = False
    #: What a client must have to take part.
    needs = ()

    def obstacle(self, kind):
        """Why this client cannot take part; None where it can."""
        return next((kind.lacks[feature] for feature in self.needs if feature in kind.lacks), None)

    async def begin(self, scene):
        await scene.open()
        scene.write()

    async def happen(self, stage, scenes):
        """To all of them."""

    async def end(self, scene):
        """What each does then."""


class SignIn(Story):
    """A socket by the project's key, a channel by the user's token."""
    name = "sign-in"


class Chat(Story):
    """Rows and broadcasts in both directions, while both are shown as present."""
    name = "chat"

    async def end(self, scene):
        for _ in range(20):
            scene.write()
            if scene.friends:
                scene.tell()
            if scene.friends and scene.has("broadcasts"):
                scene.say()
            await asyncio.sleep(0)


class Background(Story):
    """The system freezes the app and takes its socket away; the app comes back to the foreground."""
    name, may_repeat = "background", True

    async def end(self, scene):
        scene.client.freeze()
        for _ in range(3):
            scene.write()
        scene.proxy.cut()
        scene.client.thaw()


class NetworkChange(Story):
    """The network is gone for a while, and another one when it is back."""
    name, may_repeat = "network change", True

    async def end(self, scene):
        await scene.proxy.close()
        scene.write()
        await eventually(lambda: not scene.client.is_open, what="the end of the socket")
        scene.write()
        await scene.proxy.open()
        scene.write()


class TokenExpiry(Story):
    """The token ends before the app has the next one."""
    name, may_repeat, needs = "token expiry", True, ("tokens",)

    async def begin(self, scene):
        await scene.open(lifetime=3)
        scene.write()

    async def end(self, scene):
        def is_over():
            return any("expired" in str(frame.payload) for frame in scene.client.log if frame.topic == scene.channel.topic)
        await eventually(is_over, what="the end of the token")
        scene.write()
        await scene.stage.hub.settled()
        scene.client.set_token(token(sub=scene.ann))


class HubRestart(Story):
    """The hub is killed, and started again."""
    name, may_repeat = "hub restart", True

    async def stop(self, hub):
        await asyncio.to_thread(hub.kill)

    async def happen(self, stage, scenes):
        for scene in scenes:
            scene.write()
        await self.stop(stage.hub)
        for scene in scenes:
            scene.write()
        await asyncio.to_thread(stage.hub.start)
        for scene in scenes:
            scene.write()


class Drain(HubRestart):
    """The hub is told to stop, and started again: a deploy."""
    name = "drain"

    async def stop(self, hub):
        assert await asyncio.to_thread(hub.stop) == 0


class DeniedWrite(Story):
    """Broadcasts that are refused, by a policy and for their size, in channels without `ack`: nobody is told, and nothing freezes."""
    name, needs = "denied write", ("broadcasts",)

    async def end(self, scene):
        answers = sum(frame.event == "phx_reply" for frame in scene.client.log)
        joins = 0
        if scene.has("private channels"):
            secret = scene.room + "_secret"
            scene.stage.sql.execute("insert into public.channel_rights values (%s, %s, 'broadcast', 'read')", [secret, scene.ann])
            channel = scene.client.channel(secret, Wishes(is_private=True))
            channel.subscribe()
            await scene.joined(channel)
            await eventually(lambda: any(frame.event == "phx_reply" and frame.topic == channel.topic for frame in scene.client.log))
            joins = 1
            channel.broadcast("message", {"n": 0})
        scene.channel.broadcast("message", {"text": "x" * TOO_LARGE})
        await scene.client.settled()
        await scene.stage.hub.settled()
        await scene.client.settled()
        replies = [frame for frame in scene.client.log if frame.event == "phx_reply" and frame.topic != "phoenix"]
        told = [frame for frame in replies if frame.payload["status"] == "error"]
        assert not told, f"{len(replies) - answers - joins} answers too many: {told}"


class PolicyChange(Story):
    """Ann is put out of her room and let in again; then she may not read a private channel any more, and again she may."""
    name, may_repeat = "policy change", True

    async def end(self, scene):
        stage = scene.stage
        await scene.written()
        stage.put_out(scene.room, scene.ann)
        scene.write(is_expected=False)
        await stage.hub.settled()
        stage.let_in(scene.room, scene.ann)
        scene.write()
        await scene.written()
        scene.outcome.misshown += [id for id in scene.channel.seen.rows if id in scene.forbidden]
        # She may see them again: a client that loses its socket from here on may be brought them, as a SELECT would.
        scene.visible_again, scene.forbidden = scene.forbidden, []
        if scene.has("private channels") and scene.has("tokens"):
            await self.lose_a_channel(scene)

    async def lose_a_channel(self, scene):
        secret = scene.room + "_secret"
        sql = scene.stage.sql

        def give():
            sql.execute("insert into public.channel_rights values (%s, %s, 'broadcast', 'read')", [secret, scene.ann])
        give()
        channel = scene.client.channel(secret, Wishes(is_private=True))
        channel.subscribe()
        await scene.joined(channel)
        sql.execute("delete from public.channel_rights where topic = %s", [secret])
        scene.client.set_token(token(sub=scene.ann, lifetime=3700))
        client = scene.client
        # Refused once, or beyond hearing it.
        await eventually(
            lambda: channel.seen.refusals or client.freezes or not (channel.is_joined or channel.rejoining or channel.deadline),
            scene.patience, lambda: f"a refusal: {channel.seen}")
        give()
        await scene.joined(channel)


class NextUser(Story):
    """Ann signs out, and Bea signs in on the same socket: what is Ann's is not shown to her."""
    name, needs = "next user", ("tokens",)

    async def begin(self, scene):
        scene.other = scene.room + "_other"
        scene.bea = scene.room + "_bea"
        scene.stage.let_in(scene.other, scene.bea)
        await scene.open(rooms=[scene.room, scene.other])
        scene.write()
        scene.write(scene.other, is_expected=False)
        await scene.written()

    async def end(self, scene):
        client, stage = scene.client, scene.stage
        client.sign_out()
        if client.is_open:
            await client.settled()
        await stage.hub.settled()
        scene.outcome.misshown += [id for id in scene.channel.seen.rows if id in scene.forbidden]
        # Bea may see what is in the other room, also from the moment before she came.
        scene.forbidden = []
        scene.write(is_expected=False)
        await stage.hub.settled()
        if not client.is_wanted:
            client.token = token(sub=scene.bea)
            scene.me = scene.channel.wishes.presence = "bea"
            await client.connect()
            scene.channel.subscribe()
            await scene.live()
        else:
            client.set_token(token(sub=scene.bea))
        await client.settled()
        await stage.hub.settled()
        scene.write(is_expected=False)
        # The rest of the story is Bea's.
        scene.room = scene.other


ALL = (SignIn(), Chat(), Background(), NetworkChange(), TokenExpiry(), HubRestart(), Drain(), DeniedWrite(), PolicyChange(), NextUser())
