/// The progress through the messages of one boot of a hub.
struct PublisherProgress {
    /// Everything up to here is applied or was reported missing.
    var applied: UInt64
    /// The epoch in which `applied` was last known to cover everything the publisher had written.
    var heardIn: UInt64?
    /// The publisher's digest after a sequence that is not applied yet.
    var digest: (sequence: UInt64, value: UInt64)?
    var isEnded = false
    /// When the publisher was last heard, counted in entries and beats of all publishers.
    var heard: UInt64 = 0
}

/// A beat's claims about its hub's messages, kept until the log is read as far as the beat knew it.
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

/// The known publishers, bounded in number; those that ended longest ago are forgotten first. An ended publisher is
/// kept as long as there is room, because it may only have been frozen, and its repeated messages must be recognized.
struct LogPublishers {
    static let most = 1_024
    private(set) var all: [HubIdentity: PublisherProgress] = [:]
    private var clock: UInt64 = 0

    subscript(hub: HubIdentity) -> PublisherProgress? { all[hub] }

    mutating func setProgress(_ hub: HubIdentity, _ progress: PublisherProgress) {
        clock += 1
        if all[hub] == nil, all.count >= Self.most, let oldest = oldestPublisher() { all[oldest] = nil }
        all[hub] = progress
        all[hub]?.heard = clock
    }

    /// Knowledge about the ends of all publishers' messages no longer holds, because entries went missing.
    mutating func doubtAll() {
        for hub in all.keys { all[hub]?.heardIn = nil }
    }

    private func oldestPublisher() -> HubIdentity? {
        all.min { ($0.value.isEnded ? 0 : 1, $0.value.heard) < ($1.value.isEnded ? 0 : 1, $1.value.heard) }?.key
    }
}
