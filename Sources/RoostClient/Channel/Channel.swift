/// A channel: row changes, broadcasts, presence and typing under one name.
///
/// It stays joined while somebody holds it or one of its sequences, over all losses of the connection, until `leave()`.
public final class Channel: Sendable {
    /// The whole name, with `realtime:`.
    public let topic: String
    let id: ChannelID
    let core: Core
    private let flag = ChannelFlag()

    init(_ topic: String, _ configuration: ChannelConfiguration, _ core: Core) {
        self.topic = topic
        self.core = core
        id = core.nextID()
        core.post(.open(id, topic: topic, configuration, flag))
    }

    deinit { core.post(.release(id)) }

    /// It was left, or ended for good; `RoostClient.channel` makes a new one.
    public var isOver: Bool { flag.isOver }

    /// Joins. Returns when the hub has answered and row changes are live: every commit from then on arrives.
    ///
    /// Goes on trying while there is no connection, until its task is cancelled. Throws where the hub refuses the
    /// channel or its row changes for good.
    public func subscribe() async throws(RoostError) { try await core.call(id, .subscribe) }

    /// Leaves at once: the others see the presence go. All sequences end.
    public func leave() async {
        do throws(RoostError) { try await core.call(id, .leave) } catch {
            // Whatever it says, the channel is left.
        }
    }
}
