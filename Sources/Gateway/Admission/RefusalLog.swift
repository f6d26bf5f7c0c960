package import HTTP
package import Logging

/// Tells the log why clients get a no: of each address and reason the first at once, and then once a minute how many more, for each
/// sentence that they were told.
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
        let told: Told
        /// What was said since a line was written, and how often.
        private(set) var untold: [(sentence: String, count: Int)] = []
        /// For more sentences than are kept.
        private(set) var others = 0

        init(since: Int32, told: Told) {
            self.since = since
            self.told = told
        }

        mutating func count(_ why: String) {
            // Where only a number differs it is the same.
            if let place = untold.firstIndex(where: { RefusalLog.isAlike($0.sentence, why) }) {
                untold[place].count += 1
            } else if untold.count < RefusalLog.mostSentences {
                untold.append((RefusalLog.cut(why), 1))
            } else {
                others += 1
            }
        }
    }

    /// What a line says of who was refused.
    private struct Told {
        let message: Logger.Message
        let peer: String
        /// Of a line that is about one alone.
        var trace: TraceContext?
    }

    /// Seconds between two lines about the same.
    static let span: Int32 = 60
    /// Addresses and reasons that are remembered, each some hundred bytes, or as many for each of its sentences.
    package static let capacity = 500
    /// Sentences are cut here: some quote what a client asked for.
    private static let longest = 300
    /// Of one address and reason; a minute has a line for each.
    package static let mostSentences = 4

    private var records: [Subject: Record] = [:]
    private var tellsRestAt = Self.span

    package init() {}

    /// - Parameters:
    ///   - address: of the client, or of the proxy that brought it.
    ///   - reason: one of a fixed set.
    ///   - second: of the loop.
    ///   - trace: of the request, or of the upgrade that the socket began with.
    package mutating func tell(
        _ message: Logger.Message, reason: String, why: String, of address: IPAddress?, at second: Int32,
        _ logger: Logger, trace: TraceContext? = nil
    ) {
        guard logger.logLevel <= .info else { return }
        var subject = Subject(address: address.map { PeerAddress($0) }, reason: reason)
        var peer = address?.text ?? "without an address"
        if records[subject] == nil, records.count >= Self.capacity {
            (subject, peer) = (Subject(address: nil, reason: reason), "one of many")
        }
        if records[subject] != nil {
            records[subject]?.count(why)
            return
        }
        records[subject] = Record(since: second, told: Told(message: message, peer: peer))
        let told = Told(message: message, peer: peer, trace: trace)
        Self.log(told, reason, Self.cut(why), more: 0, logger)
    }

    /// Once a second. Tells how many more there were, and forgets whoever was not refused again for a minute.
    package mutating func secondGoesBy(_ second: Int32, _ logger: Logger) {
        guard second >= tellsRestAt, !records.isEmpty else { return }
        // Not each second: that is often enough for what is a minute apart.
        tellsRestAt = second + 5
        for (subject, record) in records where second - record.since >= Self.span {
            guard !record.untold.isEmpty else {
                records[subject] = nil
                continue
            }
            for (sentence, count) in record.untold.sorted(by: { $0.count > $1.count }) {
                Self.log(record.told, subject.reason, sentence, more: count, logger)
            }
            if record.others > 0 {
                Self.log(record.told, subject.reason, "for other reasons", more: record.others, logger)
            }
            records[subject] = Record(since: second, told: record.told)
        }
    }

    private static func log(_ told: Told, _ reason: String, _ why: String, more: Int, _ logger: Logger) {
        var facts: Logger.Metadata = ["peer": .string(told.peer), "reason": .string(reason), "why": .string(why)]
        if more > 0 { facts["again"] = .stringConvertible(more) }
        for fact in told.trace?.facts ?? [] { facts[fact.name] = .string(fact.value) }
        logger.info(told.message, metadata: facts)
    }

    private static func cut(_ text: String) -> String {
        text.utf8.count > longest ? text.prefix(longest) + "…" : text
    }

    /// Whether two sentences, of which the first may be cut, are the same but for their digits.
    private static func isAlike(_ one: String, _ other: String) -> Bool {
        func letters(_ text: String) -> some Sequence<UInt8> {
            text.utf8.lazy.filter { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.prefix(longest / 2)
        }
        return letters(one).elementsEqual(letters(other))
    }
}
