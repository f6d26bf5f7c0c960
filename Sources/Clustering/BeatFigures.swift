/// What a hub says of itself in each beat, for the operator's page: numbers by their position, of which an older hub sends fewer.
package struct BeatFigures: Sendable, Equatable {
    /// WebSockets that are open.
    package var connections: Int?
    /// Seconds since it began.
    package var age: Int?
    /// Messages a second that it told the others, and that came from them.
    package var said: Int?
    package var heard: Int?
    /// Entries of the log that it had not read yet when it last looked.
    package var behind: Int?
    /// Times that its clients were told that messages are missing.
    package var gaps: Int?

    /// So that those of many hubs can be added up.
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

/// How much a counter grows a second, by what it was at the last beats.
struct BeatRate {
    private var marks: [(count: UInt64, at: Int64)] = []
    /// Two beats: a second.
    private static let most = 3

    /// - Parameter now: in monotonic milliseconds.
    /// - Returns: 0 at first.
    mutating func count(_ count: UInt64, at now: Int64) -> Int {
        marks.append((count, now))
        if marks.count > Self.most { marks.removeFirst() }
        let first = marks[0]
        guard now > first.at, count >= first.count else { return 0 }
        let (thousandfold, overflow) = (count - first.count).multipliedReportingOverflow(by: 1000)
        return Int(clamping: (overflow ? .max : thousandfold) / UInt64(now - first.at))
    }
}
