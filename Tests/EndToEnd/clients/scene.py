"""One client in one story: what it is shown is counted against what it should be shown."""

import asyncio
from dataclasses import dataclass, field

from clients.channel import Wishes
from clients.javascript import JavaScript
from support.deadline import PATIENCE, eventually
from support.proxy import Proxy
from support.tokens import token

#: Seconds after which a client that is known to be stuck counts as stuck.
IMPATIENCE = 6

#: Rows of rooms, which members of the room may see.
INSTALL = """
    create table public.kit_message (id bigint generated always as identity primary key, room text not null, body text);
    create table public.kit_member (room text, who text, primary key (room, who));
    grant select on public.kit_message, public.kit_member to anon, authenticated;
    alter table public.kit_message enable row level security;
    create policy members on public.kit_message for select using (exists (
        select from public.kit_member m where m.room = kit_message.room and m.who = current_setting('request.jwt.claim.sub', true)));
"""


@dataclass
class Outcome:
    """What is counted. An empty one is a story that ended well."""
    stuck: bool = False
    lost: list = field(default_factory=list)
    repeated: list = field(default_factory=list)
    disordered: bool = False
    misshown: list = field(default_factory=list)
    mispresent: list = field(default_factory=list)
    unsubscribed: int = 0
    thrown: list = field(default_factory=list)
    #: What else was not as it should be, in words.
    failure: str = ""
    #: Frames that froze a client's read loop. One that comes back by itself is not stuck.
    freezes: list = field(default_factory=list)

    def complaints(self, may_repeat=False):
        found = {name: value for name, value in vars(self).items() if value and name != "freezes"}
        if may_repeat:
            found.pop("repeated", None)
        return found


class Scene:
    def __init__(self, stage, story, kind):
        self.stage, self.story, self.kind = stage, story, kind
        self.room = f"{story.name.replace(' ', '_').replace('-', '_')}_{kind.__name__.lower()}"
        self.ann = self.room + "_ann"
        self.me = "ann"  # the client's presence key
        self.proxy = Proxy(stage.hub.port)
        self.client = self.channel = self.friend = self.friends = None
        self.expected, self.forbidden = [], []
        #: Rows that were forbidden when they were written, and are not any more.
        self.visible_again = []
        self.said, self.told = [], []  # numbers that the client broadcast, and that its friend did
        self.outcome = Outcome()

    @property
    def patience(self):
        """Seconds that the client is waited for."""
        return IMPATIENCE if self.story.name in self.kind.known else PATIENCE

    def has(self, feature):
        return feature not in self.kind.lacks

    # The people

    def rooms_filter(self, rooms):
        return f"room=eq.{rooms[0]}" if len(rooms) == 1 else f"room=in.({','.join(rooms)})"

    async def open(self, rooms=None, lifetime=3600):
        """The client is signed in as Ann and in its channel, which has rows, presence and broadcasts; so is its friend Bob."""
        self.stage.let_in(self.room, self.ann)
        await self.proxy.open()
        user = token(sub=self.ann, lifetime=lifetime)
        self.client = self.kind(self.proxy.port, token("anon"), user)
        await self.client.connect()
        wanted = self.rooms_filter(rooms or [self.room])
        wishes = Wishes([{"event": "*", "schema": "public", "table": "kit_message", "filter": wanted}], "ann" if self.has("presence") else "")
        self.channel = self.client.channel(self.room if self.has("broadcasts") or self.has("presence") else wanted, wishes)
        if self.has("presence"):
            self.channel.on_subscribed = lambda: self.channel.track({"name": "Ann"})
        self.channel.subscribe()
        await self.live()
        if self.has("broadcasts") or self.has("presence"):
            self.friend = JavaScript(self.stage.hub.port, token("anon"), token(sub=self.room + "_bob"))
            await self.friend.connect()
            self.friends = self.friend.channel(self.room, Wishes(presence="bob"))
            # As the libraries' documentation has it: whoever is subscribed tracks, each time.
            self.friends.on_subscribed = lambda: self.friends.track({"name": "Bob"})
            self.friends.subscribe()
            await self.joined(self.friends)
        if self.has("presence"):
            await eventually(lambda: len(self.friends.seen.presence) == len(self.channel.seen.presence) == 2, what="both in both lists")
        return self

    async def joined(self, channel):
        await eventually(lambda: channel.is_joined, self.patience, lambda: f"{channel.topic}: {channel.seen}")

    async def live(self):
        """The library calls the channel joined, and the hub does: some libraries do so when they have asked."""
        await self.joined(self.channel)
        await eventually(lambda: any(
            frame.event == "system" and frame.topic == self.channel.topic and frame.payload.get("status") == "ok"
            for frame in self.client.log), what=lambda: f"row changes: {self.client.log} {self.client.thrown}")

    async def close(self):
        for client in filter(None, (self.client, self.friend)):
            await client.close()
        await self.proxy.close()

    # What happens

    def write(self, room=None, is_expected=True):
        """A row, which the client is to be shown, or must not be."""
        id = self.stage.insert(room or self.room)
        (self.expected if is_expected else self.forbidden).append(id)

    async def written(self):
        """The last row that is expected has been shown."""
        await eventually(lambda: self.expected[-1] in self.channel.seen.rows, what=lambda: f"row {self.expected[-1]}: {self.channel.seen}")

    def say(self):
        self.said.append(len(self.said))
        self.channel.broadcast("message", {"n": self.said[-1]})

    def tell(self):
        """The friend says something."""
        self.told.append(len(self.told))
        self.friends.broadcast("message", {"n": self.told[-1]})

    # The end

    async def judge(self):
        outcome = self.outcome
        if self.client and not outcome.failure:
            self.write()
            outcome.stuck = not await self.hears()
            if self.client.is_open and not self.client.is_frozen:
                await self.client.settled()
            await self.count(outcome, 0 if outcome.stuck else PATIENCE)
        return outcome

    async def hears(self):
        """Whether the client is shown a row that is written now, or a little later."""
        waited = 0
        while waited < self.patience:
            last = self.stage.insert(self.room)
            try:
                await eventually(lambda: self.channel.seen.rows[-1:] == [last], 1)  # as often as a row is written
                return True
            except AssertionError:
                waited += 1
        return False

    async def count(self, outcome, patience):
        rows = self.channel.seen.rows
        first = [id for id in dict.fromkeys(rows) if id not in self.visible_again]
        outcome.lost += [id for id in self.expected if id not in first]
        outcome.misshown += [id for id in first if id in self.forbidden]
        outcome.repeated = sorted({id for id in rows if rows.count(id) > 1})
        outcome.disordered = first != sorted(first)
        outcome.unsubscribed = sum(channel.left_by_itself for channel in self.client.channels.values())
        outcome.thrown, outcome.freezes = self.client.thrown, self.client.freezes
        if not outcome.stuck:
            await self.compare_broadcasts(self.channel, self.told, outcome)
            if self.friends and self.has("broadcasts"):
                await self.compare_broadcasts(self.friends, self.said, outcome)
            if self.has("presence"):
                await self.compare_presence(outcome, patience)

    async def compare_broadcasts(self, channel, numbers, outcome):
        def heard():
            return [body["n"] for body in channel.seen.broadcasts if "n" in body]
        try:
            await eventually(lambda: set(numbers) <= set(heard()))
        except AssertionError:
            outcome.lost += [f"broadcast {n}" for n in numbers if n not in heard()]
        outcome.repeated += [f"broadcast {n}" for n in set(heard()) if heard().count(n) > 1]
        outcome.disordered |= heard() != sorted(heard())

    async def compare_presence(self, outcome, patience):
        everybody = {self.me, "bob"}
        for who, channel in (("Ann", self.channel), ("Bob", self.friends)):
            def is_right(shown):
                return shown == everybody or channel.client.keeps_absent and shown > everybody
            try:
                await eventually(lambda: is_right(set(channel.seen.presence)), patience)
            except AssertionError:
                outcome.mispresent.append(f"{who} sees {sorted(channel.seen.presence)}")


class Stage:
    """The hub and its database, on which a story is played by all clients at once."""

    def __init__(self, hub, sql):
        self.hub, self.sql = hub, sql

    def let_in(self, room, who):
        self.sql.execute("insert into public.kit_member values (%s, %s) on conflict do nothing", [room, who])

    def put_out(self, room, who):
        self.sql.execute("delete from public.kit_member where room = %s and who = %s", [room, who])

    def insert(self, room):
        return self.sql.execute("insert into public.kit_message (room, body) values (%s, 'x') returning id", [room]).fetchone()[0]

    async def play(self, story, kinds):
        """The outcome by client; None where it cannot take part."""
        scenes = {kind: Scene(self, story, kind) for kind in kinds if not story.obstacle(kind)}
        await self._each(story.begin, scenes.values())
        await story.happen(self, [scene for scene in scenes.values() if not scene.outcome.failure])
        await self._each(story.end, [scene for scene in scenes.values() if not scene.outcome.failure])
        outcomes = await asyncio.gather(*(scene.judge() for scene in scenes.values()))
        await asyncio.gather(*(scene.close() for scene in scenes.values()))
        return {kind: None for kind in kinds} | dict(zip(scenes, outcomes, strict=True))

    @staticmethod
    async def _each(step, scenes):
        async def guarded(scene):
            try:
                await step(scene)
            except Exception as error:  # one client's failure is its own
                scene.outcome.failure = f"{type(error).__name__}: {error}"[:600]
        await asyncio.gather(*(guarded(scene) for scene in scenes))
