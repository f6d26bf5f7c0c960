/// The figures a hub reports in each beat, for the operator's page: numbers by position; an older hub sends fewer.
package struct BeatFigures: Sendable, Equatable {
    /// Open WebSockets.
    package var connections: Int?
    /// Seconds since the hub started.
    package var age: Int?
    /// Messages per second, sent to the other hubs and received from them.
    package var said: Int?
    package var heard: Int?
    /// Log entries that the hub had not yet read at its last check.
    package var behind: Int?
    /// The number of times its clients were told that messages are missing.
    package var gaps: Int?

    /// Bounds each figure, so that those of many hubs can be added up.
    private static let most: UInt64 = 1 << 53

    init() {}

    init(_ list: [UInt64]) {
        func figure(_ index: Int) -> Int? { index < list.count ? Int(clamping: min(list[index], Self.most)) : nil }
        (connections, age, said) = (figure(0), figure(1), figure(2))
        (heard, behind, gaps) = (figure(3), figure(4), figure(5))
    }

    var list: [UInt64] {
        [connections, age, said, heard, behind, gaps].map { UInt64(max(0, $0 ?? 0)) }
    }
}

/// The growth of a counter per second, from its values at the last beats.
struct BeatRate {
    private var marks: [(count: UInt64, at: Int64)] = []
    /// Two intervals between beats: a second.
    private static let most = 3

    /// - Parameter now: monotonic milliseconds.
    /// - Returns: 0 on the first call.
    mutating func updateRate(_ count: UInt64, at now: Int64) -> Int {
        marks.append((count, now))
        if marks.count > Self.most { marks.removeFirst() }
        let first = marks[0]
        guard now > first.at, count >= first.count else { return 0 }
        let (thousandfold, overflow) = (count - first.count).multipliedReportingOverflow(by: 1000)
        return Int(clamping: (overflow ? .max : thousandfold) / UInt64(now - first.at))
    }
}
