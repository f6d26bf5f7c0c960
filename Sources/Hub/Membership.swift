import Streams
package import Wire

/// One connection's part in one channel, from its join to its leave. A class for the same reason as `Connection`.
///
/// It and its connection refer to each other until `Hub.removeMember` ends it, which happens before the connection
/// goes.
package final class Membership {
    package let connection: Connection
    let channel: LocalChannel
    /// The state of its join; once ended, it is sent nothing.
    package var join = JoinMachine()
    /// The channel's hash: a socket in a thousand channels finds one of them without visiting each.
    let topicHash: Int
    /// The ref of the join, as JSON text. A String, because short ones are stored inline and a slice would keep the
    /// whole frame alive.
    let joinRefText: String
    package var claims: Claims
    /// Unique in the process: identifies the owner of this member's presence.
    let member: MemberID
    let echoesToSelf: Bool
    let acknowledges: Bool
    var presence: MemberPresence
    /// Nil in a public channel.
    package let grants: ChannelGrants?
    /// Nil unless the join asked for row changes.
    var rows: RowSubscription?
    /// Nil unless there are `rows`.
    package var recovery: MemberRecovery?
    /// Nil unless the join asked for history.
    var history: MemberHistory?
    /// Its position in the stream, in a stream's channel.
    var streamPlace: StreamPlace?
    /// The channel's index in a reader's request, and the position that its client came back to.
    let readerIndex: Int?
    let returnsTo: EventPosition?
    /// The member has written the channel's stream: its end is that of the producer.
    var holdsStream = false
    /// The generation that it last wrote, which knows of its connection.
    var heldGeneration: StreamID?
    /// Its position in the audience of the channel's broadcasts. Nil until its join is answered, if it may not hear
    /// them, and if it has history, which delivers them.
    var memberIndex: Int32?
    /// The moment since which it hears broadcasts, as counted by `SessionRegistry.moment`.
    var hearsBroadcastsSince = Int.max
    /// Its token has expired, and it waits for a fresh one: nothing reaches it.
    var lapse: TokenLapse?
    /// To be told once changes flow.
    var awaitsReplication = false
    /// Until this time failures of its row changes are withheld, because its client may still send the token of its
    /// join; and whether one was.
    var firstTokenDue: Int64?
    var isOwedState = false
    /// Data for the join's answer, until it is given.
    var pending: PendingJoin?

    package init(
        _ config: JoinConfig, of connection: Connection, in channel: LocalChannel, joinRef: String, claims: Claims,
        member: MemberID, presenceKey: @autoclosure () -> String, pending: PendingJoin
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
        grants = config.isPrivate ? ChannelGrants(config) : nil
        self.pending = pending
        readerIndex = config.readerIndex
        returnsTo = config.position
        streamPlace = ChannelStream.isOne(channel.key.topic) ? StreamPlace(config.stream) : nil
    }

    var slot: Slot { connection.slot }
    var version: ProtocolVersion { connection.version }
    /// Encodes frames for it.
    var frames: ServerFrame { channel.frames(version) }
    var joinRef: JSON { JSON(trusted: Array(joinRefText.utf8)[...]) }

    /// Whether a frame belongs to this incarnation of the membership. One with an earlier join's ref does not: its
    /// client had not learned of this join, or sent the frame before it. One without a join's ref belongs to the
    /// current one.
    func isMeant(by joinRef: JSON) -> Bool {
        joinRef.isNull || joinRef.bytes.elementsEqual(joinRefText.utf8)
            // A number in the text of the join, and text in a binary frame.
            || Self.bareRef(joinRef.bytes).elementsEqual(Self.bareRef(Array(joinRefText.utf8)[...]))
    }

    private static func bareRef(_ ref: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        ref.count >= 2 && ref.first == UInt8(ascii: "\"") ? ref.dropFirst().dropLast() : ref
    }
}

/// Data needed to answer a join.
package final class PendingJoin {
    let ref: JSON
    /// The bindings as the client sent them, with IDs added.
    let response: [UInt8]
    let wantsPresence: Bool
    let wantsOccupancy: Bool
    let wantsReplicationReady: Bool
    let changesWait: Int64?
    /// The join brought a token of its own.
    let hasToken: Bool
    /// In monotonic milliseconds.
    let began: Int64
    /// In a public channel, the last `track` or `untrack` that came after the join: it is performed when the join is
    /// answered.
    var presence: HeldWrites.Entry?

    package init(_ config: JoinConfig, ref: JSON, response: [UInt8], at now: Int64) {
        self.ref = ref
        began = now
        changesWait = config.changesWait
        hasToken = config.token != nil
        self.response = response
        wantsPresence = config.wantsPresence
        wantsOccupancy = config.wantsOccupancy
        wantsReplicationReady = config.wantsReplicationReady
    }
}

/// The reason why a membership ended.
package enum MembershipEnd {
    /// The client asked for it.
    case left
    /// Its client announced that it is going, as a page does that is unloaded: only a page that was kept and is shown
    /// again comes back, with refs that continue. The user may be back in a moment.
    case unloaded
    /// The client rejoined on the same socket, so it had not learned, or not believed, that it was in.
    case replaced
    /// Anything else: it may come back for what it missed.
    case lost
    /// It lost its right to be there.
    case revoked

    /// Whether the others are told at once that it is gone.
    var isFinal: Bool { self == .left || self == .revoked }
}
