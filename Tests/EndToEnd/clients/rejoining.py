"""The way to rejoin of the libraries that are translated from realtime-js 1: its timer runs on while a join is under way.

`rejoinUntilConnected` sets the timer anew before it joins, and a join begins with `leaveOpenTopic`, which leaves every channel of that topic
that is joined *or joining*: if the answer has not come when the timer fires again, it leaves itself, for good.
Read: supabase/realtime-js v1.7.5 RealtimeSubscription.ts; supabase/supabase-flutter realtime_client-v2.9.1 realtime_channel.dart.
"""

from clients.channel import Channel, State


class SelfLeavingChannel(Channel):
    def join(self):
        """Whatever joins: the app, or the timer, which goes on."""
        if self.state in (State.JOINED, State.JOINING):
            self.left_by_itself += 1
            self.leave()
            return
        timer, self.rejoining = self.rejoining, None
        super().join()
        self.rejoining = timer

    def refused(self, response):
        """Nothing hears the error of a join: the channel is `joining` until the timer leaves it. Nothing races any more by then."""
        self.state = State.JOINING
        self.report("CHANNEL_ERROR")
        self.seen.refusals.append(", ".join(str(value) for value in response.values()))
        if self.tries:
            self.rejoin_later()

    def join_expired(self):
        self.report("TIMED_OUT")
        self.state = State.ERRORED
        self.rejoin_later()

    def rejoin_later(self, seconds=None, races=False):
        if self.rejoining:
            self.rejoining.cancel()
        seconds = self.rejoin_after[min(self.tries, len(self.rejoin_after) - 1)]
        self.tries += 1
        self.rejoining = self.client.start(self.fire(seconds, races))

    async def fire(self, seconds, races):
        await (self.client.clock.race if races else self.client.clock.wait)(seconds)
        self.rejoining = None
        if self.state in (State.LEAVING, State.CLOSED):
            return
        if self.client.is_open:
            self.join()
        if self.state is not State.LEAVING:
            # While its join is under way, the hub has so long to answer.
            self.rejoin_later(races=self.state is State.JOINING)

    def socket_lost(self):
        self.answers = {}
        if self.state in (State.LEAVING, State.CLOSED):
            return
        self.stop_timers()
        self.state = State.ERRORED
        self.report("CHANNEL_ERROR")
        self.rejoin_later()

    def socket_opened(self):
        """Its timer brings it back, not the socket."""
