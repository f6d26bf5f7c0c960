/// Reads the log that hubs share: decides which entry comes next, finds what is missing, and says what is lost.
///
/// It is told what comes by the subscription, what OPEN and XRANGE answered and when links fail, and answers with actions
/// in their order. It promises that each message of each boot is applied once, in its publisher's order and in the log's,
/// or that exactly those that are missing are told. It has no clock and does no I/O; whoever owns it runs it on one thread.
///
/// A reader that starts begins at the head: what came before is owed to nobody. Nor can anybody tell what a hub had
/// accepted that ended before any hub that lives had heard of it; its own clients were cut off with it.
package struct LogReader {
    package struct Limits: Sendable {
        /// Bytes of entries that came ahead of a hole.
        package var aheadBytes = 4 << 20
        /// Bytes of messages to this hub that wait for their turn.
        package var heldBytes = 16 << 20
        /// Bytes that the log keeps, about (`length`).
        package var logBytes = 64 << 20
        /// Entries of one fetch.
        package var fetchCount = 64
        /// Milliseconds: a hub of which nothing was heard, that started and ended while this reader was away, and whose
        /// log was lost as well, is told of where this reader was away for longer.
        package var unheardOf: Int64 = 3_000
        /// Milliseconds: a hub of which others heard last so long before this reader began may have lived then.
        package var unheardAtStart: Int64 = 1_500

        package init() {}
    }

    /// What was met, for metrics.
    package struct Statistics: Equatable, Sendable {
        package var repeats = 0
        package var holes = 0
        package var forks = 0
        package var fetches = 0
        package var unknownVersions = 0
        package var malformed = 0
        package var otherEpochs = 0
        package var stale = 0

        package init() {}
    }

    package let own: HubIdentity
    package let limits: Limits
    package internal(set) var statistics = Statistics()
    /// The last entry that was read, or where reading began.
    package internal(set) var place: LogPlace?
    /// Whether all up to the head is read, as far as this reader knows.
    package internal(set) var isCaughtUp = false

    /// Where this reader began. Nothing at or before it is owed.
    var origin: LogPlace?
    /// And when, in milliseconds.
    var beganAt: Int64?
    /// The tag of the entry at `place`; nil where it is not known.
    var tag: UInt64?
    var lineage: LogLineage?
    /// Whether the connection for commands can be used.
    var isOpen = false
    /// Reading is done when this place is reached.
    var target: LogPlace?
    var fetching: (id: UInt64, target: LogPlace)?
    var lastFetch: UInt64 = 0
    var isReopenAsked = false
    /// An entry that was read stands in the log with another tag.
    var isRewritten = false
    /// The log was read again from its beginning since this reader was last caught up.
    var isRereading = false
    /// The log does not have what it should.
    var isDoubted = false
    /// Whether entries went missing since the origin, so that an unknown publisher may have sent some of them.
    var hadHoles = false
    /// When this reader last knew that it had read all, in milliseconds.
    var verifiedAt: Int64?
    /// This hub's newest sequence that this log has.
    var ownSequence: UInt64? = 0
    /// The newest that this hub has sent. An entry in its name that has more is none of its own.
    package var sentThrough: UInt64 = .max
    var recent = RecentEntries()
    var ahead: AheadEntries
    var held: HeldMessages
    var publishers = LogPublishers()
    package internal(set) var length: LogLength
    var claims: [HubIdentity: SettledClaim] = [:]

    package init(own: HubIdentity, limits: Limits = Limits()) {
        self.own = own
        self.limits = limits
        length = LogLength(mostBytes: limits.logBytes)
        ahead = AheadEntries(mostBytes: limits.aheadBytes)
        held = HeldMessages(mostBytes: limits.heldBytes)
    }

    /// The epoch that was opened last.
    package var epoch: UInt64? { lineage?.epoch }
    /// How many bytes wait here for something.
    package var waitingBytes: Int { ahead.bytes + held.bytes }
    /// How far this publisher's messages are applied or told; nil for one that was never heard of.
    package func applied(_ hub: HubIdentity) -> UInt64? { publishers[hub]?.applied }

    /// The connection for commands was lost. Entries that come by the subscription are still applied while they follow
    /// each other.
    package mutating func linkAway() {
        isOpen = false
        fetching = nil
        isReopenAsked = false
        isCaughtUp = false
    }

    mutating func askToReopen(_ actions: inout [LogReaderAction]) {
        guard !isReopenAsked else { return }
        isReopenAsked = true
        actions.append(.reopen)
    }
}
