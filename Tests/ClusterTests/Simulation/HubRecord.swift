import Cluster

/// What one run of a hub was told: each message that it applied, each gap and fork.
struct HubRecord {
    struct Applied {
        var boot: UInt64
        var sequence: UInt64
        var place: LogPlace
        /// Its place is no longer in the log, so that it may stand elsewhere in the order of others.
        var isForked = false
    }

    /// When it first knew the log. What was accepted from then on is owed to it.
    var since: Int64?
    private(set) var applied: [Applied] = []
    private(set) var gaps: [(at: Int64, gap: LogGap)] = []
    private var lasts: [UInt64: UInt64] = [:]
    /// Sequences that were told as missing, by boot.
    private(set) var missing: [UInt64: [ClosedRange<UInt64>]] = [:]
    private(set) var problems: [String] = []
    private(set) var healed = 0
    /// When a beat or a message of each boot came last.
    var heardAt: [UInt64: Int64] = [:]
    var dropped = 0
    var deaths = 0
    var falseDeaths = 0
    var delivered = 0
    var misplaced = 0
    var compared = 0
    var stale = 0
    var undecoded = 0

    /// The newest sequence of a boot that was applied or told.
    func last(of boot: UInt64) -> UInt64? { lasts[boot] }

    mutating func apply(_ messages: AppliedMessages, isHealing: Bool) {
        let boot = messages.hub.boot
        for (index, message) in messages.messages.enumerated() {
            let sequence = messages.sequence + UInt64(index)
            let words = message.split(separator: 0x20).map { String(decoding: $0, as: UTF8.self) }
            if words.prefix(2) != ["\(boot)", "\(sequence)"] { problems.append("\(boot)/\(sequence) is \(words)") }
            if let last = lasts[boot], sequence <= last { problems.append("\(boot)/\(sequence) again, after \(last)") }
            lasts[boot] = sequence
            applied.append(Applied(boot: boot, sequence: sequence, place: messages.place))
        }
        if isHealing { healed += messages.messages.count }
    }

    mutating func tell(_ gap: LogGap, at now: Int64) {
        gaps.append((now, gap))
        guard let hub = gap.hub, let range = gap.missing else { return }
        if let last = lasts[hub.boot], range.lowerBound <= last {
            problems.append("\(hub) \(range) told, after \(last)")
        }
        lasts[hub.boot] = range.upperBound
        missing[hub.boot, default: []].append(range)
    }

    mutating func fork(after place: LogPlace?) {
        for index in applied.indices.reversed() {
            if applied[index].isForked { continue }
            if let place, applied[index].place <= place { break }
            applied[index].isForked = true
        }
    }
}
