import Streams
package import Wire

/// One connection's part in one channel, from its join to its leave. A class, as `Connection` is, and for the same reason.
///
/// It and its connection hold each other until `Hub.remove` ends it, as it does before the connection goes.
package final class Membership {
    package let connection: Connection
    let channel: LocalChannel
    /// How far its join is; ended, nothing is sent to it any more.
    package var join = JoinMachine()
    /// The channel's: a socket in a thousand channels looks for one of them without visiting each.
    let topicHash: Int
    /// The ref of the join, as JSON text. A String, because short ones are kept in place and a slice would keep the
    /// whole frame alive.
    let joinRefText: String
    package var claims: Claims
    /// Unique in the process: the owner of this member's presence.
    let member: MemberID
    let echoesToSelf: Bool
    let acknowledges: Bool
    var presence: MemberPresence
    /// Nil in a public channel.
    package let grants: ChannelGrants?
    /// Where the join asked for row changes.
    var rows: RowSubscription?
    /// With them.
    package var recovery: MemberRecovery?
    /// Where the join asked for it.
    var history: MemberHistory?
    /// In the channel of a stream.
    var streamPlace: StreamPlace?
    /// Which of a reader's channels it is, and where its client came back to.
    let readerIndex: Int?
    let returnsTo: EventPosition?
    /// It has written the stream of its channel: its end is the producer's.
    var holdsStream = false
    /// The generation that it wrote last, which knows of its connection.
    var heldGeneration: StreamID?
    /// Its position among those who hear the channel's broadcasts. Nil until its join is answered, where it may not hear
    /// them, and where it has history, which brings them.
    var memberIndex: Int32?
    /// Since when it hears broadcasts, as `SessionRegistry.moment` counts.
    var hearsBroadcastsSince = Int.max
    /// Its token has run out, and it waits for a fresh one: nothing reaches it.
    var lapse: TokenLapse?
    /// Is to be told once changes flow.
    var awaitsReplication = false
    /// Until when it is not told that its row changes fail, as its client may yet send the token of its join; and that there is
    /// something to tell.
    var firstTokenDue: Int64?
    var isOwedState = false
    /// What the join's answer is made of, kept until it is given.
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
    /// What makes frames for it.
    var frames: ServerFrame { channel.frames(version) }
    var joinRef: JSON { JSON(trusted: Array(joinRefText.utf8)[...]) }

    /// Whether a frame is about this incarnation of the channel. One of an earlier join is not: its client had not heard of this
    /// one, or sent it before. One that does not say which join it is of, is about the one there is.
    func isMeant(by joinRef: JSON) -> Bool {
        joinRef.isNull || joinRef.bytes.elementsEqual(joinRefText.utf8)
            // A number in the text of the join, and text in a binary frame.
            || Self.bare(joinRef.bytes).elementsEqual(Self.bare(Array(joinRefText.utf8)[...]))
    }

    private static func bare(_ ref: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        ref.count >= 2 && ref.first == UInt8(ascii: "\"") ? ref.dropFirst().dropLast() : ref
    }
}

/// What answering a join needs.
package final class PendingJoin {
    let ref: JSON
    /// The bindings as the client sent them, ids added.
    let response: [UInt8]
    let wantsPresence: Bool
    let wantsOccupancy: Bool
    let wantsReplicationReady: Bool
    let changesWait: Int64?
    /// The join brought a token of its own.
    let hasToken: Bool
    /// In monotonic milliseconds.
    let began: Int64
    /// In a public channel, the last `track` or `untrack` that came behind the join: it is performed when the join is answered.
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

/// Why a member is not in its channel any more.
package enum MembershipEnd {
    /// The client asked for it.
    case left
    /// Its client said that it goes, as a page does that is unloaded: only a page that was kept and is shown again comes back, whose
    /// refs go on. The user may be back in a moment.
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
