"""What an app was shown by one of its channels."""

from dataclasses import dataclass, field


@dataclass
class Seen:
    #: Ids of rows, and numbers of broadcasts, in the order in which the app's callbacks were called.
    rows: list = field(default_factory=list)
    broadcasts: list = field(default_factory=list)
    #: By key, what each of its sockets tracks.
    presence: dict = field(default_factory=dict)
    #: Keys that were shown as gone.
    leaves: list = field(default_factory=list)
    #: What the library reported of the subscription.
    states: list = field(default_factory=list)
    #: Reasons of joins that were refused.
    refusals: list = field(default_factory=list)
    #: `status` and `message` of `system` messages.
    systems: list = field(default_factory=list)
    #: Answers to broadcasts of a channel with `ack`.
    answers: list = field(default_factory=list)

    def show_presence(self, presence):
        self.leaves += [key for key in self.presence if key not in presence]
        self.presence = presence
