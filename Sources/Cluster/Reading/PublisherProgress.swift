/// How far the messages of each boot of each hub are applied.
struct PublisherProgress {
    /// All up to here is applied, or was told as missing.
    var applied: UInt64
    /// The epoch in which this was last known to be all that the publisher had written.
    var heardIn: UInt64?
    /// What the publisher's digest was behind a sequence that is not applied yet.
    var digest: (sequence: UInt64, value: UInt64)?
    var isEnded = false
    /// When it was last heard of, in entries and beats of all.
    var heard: UInt64 = 0
}

/// What a beat says of its hub's messages, until the log is read as far as the beat knew it.
struct SettledClaim {
    var place: LogPlace
    var since: LogPlace
    var base: UInt64
    var settled: UInt64
    var digest: UInt64
    var digestSequence: UInt64

    init(_ beat: HubBeat) {
        place = beat.place
        since = beat.since
        base = beat.base
        settled = beat.settled
        digest = beat.digest
        digestSequence = beat.digestSequence
    }
}

/// The publishers that are known: a bounded number, of which those that ended longest ago are forgotten first. One that
/// ended is kept as long as there is room, because it may only have been frozen, and what it sends again is known then.
struct LogPublishers {
    static let most = 1_024
    private(set) var all: [HubIdentity: PublisherProgress] = [:]
    private var clock: UInt64 = 0

    subscript(hub: HubIdentity) -> PublisherProgress? { all[hub] }

    mutating func set(_ hub: HubIdentity, _ progress: PublisherProgress) {
        clock += 1
        if all[hub] == nil, all.count >= Self.most, let oldest = oldest() { all[oldest] = nil }
        all[hub] = progress
        all[hub]?.heard = clock
    }

    /// What was known of their tails no longer holds: entries went missing.
    mutating func doubtAll() {
        for hub in all.keys { all[hub]?.heardIn = nil }
    }

    private func oldest() -> HubIdentity? {
        all.min { ($0.value.isEnded ? 0 : 1, $0.value.heard) < ($1.value.isEnded ? 0 : 1, $1.value.heard) }?.key
    }
}
