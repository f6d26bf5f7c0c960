/// Reads the log that hubs share: decides which entry comes next, finds what is missing, and reports what is lost.
///
/// Its inputs are what arrives through the subscription, the answers of OPEN and XRANGE, and failures of links; its outputs
/// are ordered actions. It guarantees that each message of each boot is applied once, in its publisher's order and in the
/// log's, or that exactly the missing ones are reported. It has no clock and does no I/O; its owner calls it on one thread.
///
/// A log reader starts at the head and owes nothing before it. What a hub had accepted is unknown if the hub ended
/// before any living hub heard of it; its own clients were cut off with it.
package struct LogReader {
    package struct Limits: Sendable {
        /// Bytes of entries that arrived ahead of a hole.
        package var aheadBytes = 4 << 20
        /// Bytes of messages to this hub that wait for their turn.
        package var heldBytes = 16 << 20
        /// Approximate size of the log in bytes (`length`).
        package var logBytes = 64 << 20
        /// Entries per fetch.
        package var fetchCount = 64
        /// Milliseconds: if this log reader was away for longer and the log was lost, a gap is reported for hubs
        /// unknown here, which may have started and ended meanwhile.
        package var unheardOf: Int64 = 3_000
        /// Milliseconds: a hub that others last heard at most this long before this log reader began may have been alive then.
        package var unheardAtStart: Int64 = 1_500

        package init() {}
    }

    /// Counters for metrics.
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
    /// The last entry read, or where reading began.
    package internal(set) var place: LogPlace?
    /// Whether everything up to the head is read, as far as this log reader knows.
    package internal(set) var isCaughtUp = false

    /// The place where this log reader began. Nothing at or before it is owed.
    var origin: LogPlace?
    /// The time when this log reader began, in milliseconds.
    var beganAt: Int64?
    /// The tag of the entry at `place`; nil if unknown.
    var tag: UInt64?
    var lineage: LogLineage?
    /// Whether the connection for commands can be used.
    var isOpen = false
    /// Reading is complete when this place is reached.
    var target: LogPlace?
    var fetching: (id: UInt64, target: LogPlace)?
    var lastFetch: UInt64 = 0
    var isReopenAsked = false
    /// An entry that was read now has another tag in the log.
    var isRewritten = false
    /// The log is being read again from its beginning, and this log reader has not caught up since.
    var isRereading = false
    /// The log lacks entries that it should have; its head was requested once more.
    var isDoubted = false
    /// Whether entries went missing since the origin, so that an unknown publisher may have sent some of them.
    var hadHoles = false
    /// When this log reader last knew that it had read everything, in milliseconds.
    var verifiedAt: Int64?
    /// This hub's newest sequence in this log.
    var ownSequence: UInt64? = 0
    /// The newest sequence that this hub has sent. An entry in its name with a higher one is not its own.
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

    /// The epoch opened last.
    package var epoch: UInt64? { lineage?.epoch }
    /// Bytes that wait here for something.
    package var waitingBytes: Int { ahead.bytes + held.bytes }
    /// The sequence up to which this publisher's messages are applied or reported missing; nil for an unknown publisher.
    package func appliedSequence(_ hub: HubIdentity) -> UInt64? { publishers[hub]?.applied }

    /// The connection for commands was lost. Entries from the subscription are still applied as long as they are consecutive.
    package mutating func linkWasLost() {
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
