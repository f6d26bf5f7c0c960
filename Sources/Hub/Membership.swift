import Wire

/// One connection's part in one channel, from its join to its leave. A class, as `Connection` is, and for the same reason.
///
/// It and its connection hold each other until `Hub.remove` ends it, as it does before the connection goes.
final class Membership {
    let connection: Connection
    let channel: Channel
    /// How far its join is; ended, nothing is sent to it any more.
    var join = JoinMachine()
    /// The channel's: a socket in a thousand channels looks for one of them without visiting each.
    let topicHash: Int
    /// The ref of the join, as JSON text. A String, because short ones are kept in place and a slice would keep the
    /// whole frame alive.
    let joinRefText: String
    var claims: Claims
    /// Unique in the process: the owner of this member's presence.
    let member: MemberID
    let echoesToSelf: Bool
    let acknowledges: Bool
    var presence: MemberPresence
    /// Nil in a public channel.
    var grants: ChannelGrants?
    /// Where the join asked for row changes.
    var rows: RowSubscription?
    /// With them.
    var recovery: MemberRecovery?
    /// Where the join asked for it.
    var history: MemberHistory?
    /// Its position among those who hear the channel's broadcasts. Nil until its join is answered, where it may not hear
    /// them, and where it has history, which brings them.
    var memberIndex: Int32?
    /// Is to be told once changes flow.
    var awaitsReplication = false
    /// What the join's answer is made of, kept until it is given.
    var pending: PendingJoin?

    init(
        _ config: JoinConfig, of connection: Connection, in channel: Channel, joinRef: String, claims: Claims,
        member: MemberID,
        presenceKey: @autoclosure () -> String,
        grants: ChannelGrants?, pending: PendingJoin
    ) {
        self.connection = connection
        self.channel = channel
        topicHash = channel.topicHash
        joinRefText = joinRef
        self.claims = claims
        self.member = member
        echoesToSelf = config.echoesToSelf
        acknowledges = config.acknowledges
        presence = MemberPresence(key: config.presenceKey, id: member, orElse: presenceKey())
        self.grants = grants
        self.pending = pending
    }

    var slot: Slot { connection.slot }
    var version: ProtocolVersion { connection.version }
    /// What makes frames for it.
    var frames: ServerFrame { channel.frames(version) }
    var joinRef: JSON { JSON(trusted: Array(joinRefText.utf8)[...]) }
}

/// What answering a join needs.
final class PendingJoin {
    let ref: JSON
    /// The bindings as the client sent them, ids added.
    let response: [UInt8]
    let wantsPresence: Bool
    let wantsOccupancy: Bool
    let wantsReplicationReady: Bool

    init(
        ref: JSON, response: [UInt8], wantsPresence: Bool, wantsOccupancy: Bool, wantsReplicationReady: Bool
    ) {
        self.ref = ref
        self.response = response
        self.wantsPresence = wantsPresence
        self.wantsOccupancy = wantsOccupancy
        self.wantsReplicationReady = wantsReplicationReady
    }
}

/// Why a member is not in its channel any more.
enum MembershipEnd {
    /// The client asked for it.
    case left
    /// The page that it belonged to is gone: its client never comes back, but the user may, in a moment.
    case unloaded
    /// The client joined again on the same socket, so it had not heard, or not believed, that it was in.
    case replaced
    /// Anything else: it may come back for what it missed.
    case lost
    /// It may not be there any more.
    case revoked

    /// Whether the others are told at once that it is gone.
    var isFinal: Bool { self == .left || self == .revoked }
}
