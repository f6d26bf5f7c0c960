package import Logging

/// Tells the log why clients get a no: of each address and reason the first at once, and then once a minute how many more.
///
/// A client that is refused comes back every few seconds, and thousands do after a change of keys: neither they nor somebody who
/// tries out tokens may fill the log or the memory. One for each loop.
package struct RefusalLog {
    /// What is counted as one thing.
    private struct Subject: Hashable {
        /// Nil for whoever has no address, and for all who come while there are too many.
        let address: PeerAddress?
        let reason: String
    }

    private struct Record {
        /// Seconds of the loop.
        var since: Int32
        var untold = 0
        /// Of the last of them.
        var told: Told
    }

    /// What a line says of who was refused.
    private struct Told {
        let message: Logger.Message
        let peer: String
        let why: String
    }

    /// Seconds between two lines about the same.
    static let span: Int32 = 60
    /// Addresses and reasons that are remembered, each a few hundred bytes.
    package static let capacity = 500
    /// Sentences are cut here: some quote what a client asked for.
    private static let longest = 300

    private var records: [Subject: Record] = [:]
    private var tellsRestAt = Self.span

    package init() {}

    /// - Parameters:
    ///   - address: of the client, or of the proxy that brought it.
    ///   - reason: one of a fixed set.
    ///   - second: of the loop.
    package mutating func tell(
        _ message: Logger.Message, reason: String, why: String, of address: IPAddress?, at second: Int32,
        _ logger: Logger
    ) {
        guard logger.logLevel <= .info else { return }
        var subject = Subject(address: address.map { PeerAddress($0) }, reason: reason)
        var peer = address?.text ?? "without an address"
        if records[subject] == nil, records.count >= Self.capacity {
            (subject, peer) = (Subject(address: nil, reason: reason), "one of many")
        }
        if records[subject] != nil {
            records[subject]?.untold += 1
            return
        }
        let told = Told(message: message, peer: peer, why: Self.cut(why))
        records[subject] = Record(since: second, told: told)
        Self.log(told, reason, more: 0, logger)
    }

    /// Once a second. Tells how many more there were, and forgets whoever was not refused again for a minute.
    package mutating func secondGoesBy(_ second: Int32, _ logger: Logger) {
        guard second >= tellsRestAt, !records.isEmpty else { return }
        // Not each second: that is often enough for what is a minute apart.
        tellsRestAt = second + 5
        for (subject, record) in records where second - record.since >= Self.span {
            if record.untold > 0 {
                Self.log(record.told, subject.reason, more: record.untold, logger)
                records[subject] = Record(since: second, told: record.told)
            } else {
                records[subject] = nil
            }
        }
    }

    private static func log(_ told: Told, _ reason: String, more: Int, _ logger: Logger) {
        var facts: Logger.Metadata = ["peer": .string(told.peer), "reason": .string(reason), "why": .string(told.why)]
        if more > 0 { facts["again"] = .stringConvertible(more) }
        logger.info(told.message, metadata: facts)
    }

    private static func cut(_ text: String) -> String { text.count > longest ? text.prefix(longest) + "…" : text }
}
