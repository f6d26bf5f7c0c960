import Hub
import TestSupport
import Wire

/// A channel and members of it on a context of their own, for tests of one feature without a hub.
struct FeatureStage {
    let channel: LocalChannel
    var hub = HubContext(loop: 0, limits: HubLimits(), random: SeededGenerator(seed: 1))

    init(isPrivate: Bool = false) {
        channel = LocalChannel(key: ChannelKey(topic: "realtime:a", isPrivate: isPrivate))
        hub.advanceTime(to: Stage.start)
    }

    func config(_ text: String) throws -> JoinConfig {
        let json = try JSON(parsing: Array(#"{"config":\#(text)}"#.utf8)[...])
        return JoinConfig(json, topic: channel.key.topic, limits: HubLimits())
    }

    /// A member whose join, with the ref 1, is not answered yet.
    mutating func member(_ slot: Slot, _ claims: Claims, _ config: JoinConfig) -> Membership {
        let connection = Connection(slot, version: .v2, claims: claims, isPage: false, at: hub.now.monotonic)
        hub.addConnection(connection)
        let member = Membership(
            config, of: connection, in: channel, joinRef: "1", claims: claims, member: hub.nextMember(),
            presenceKey: "key", pending: PendingJoin(config, ref: .null, response: [], at: hub.now.monotonic))
        hub.addMember(member)
        return member
    }

    mutating func advance(by milliseconds: Int64) { hub.advanceTime(to: hub.now.advanced(by: milliseconds)) }

    /// What is in the context since the last call, as `Stage` describes it.
    mutating func done() throws -> [String] {
        defer { hub.actions = [] }
        return try hub.actions.compactMap(Stage.describe)
    }

    /// The questions in the context, which stay there.
    var asked: [AuthorizationID] {
        hub.actions.compactMap { if case .authorize(let id, _) = $0 { id } else { nil } }
    }

    var recoveries: [RecoveryID] {
        hub.actions.compactMap { if case .recover(let id, _) = $0 { id } else { nil } }
    }
}

extension Membership {
    /// Its join is answered.
    func isLetIn() {
        _ = join.handleEvent(.begins([]))
        _ = join.handleEvent(.recoveryIsKnown)
    }
}
