package import HTTP
package import Logging

/// Logs why clients are refused: the first refusal for each address and reason at once, then once a minute the number
/// of further ones, for each sentence.
///
/// A refused client retries every few seconds, and after a change of keys thousands do. Neither they nor an attacker
/// who tries out tokens may fill the log or the memory. Each loop has one.
package struct RefusalLog {
    /// The key under which refusals are counted together.
    private struct Subject: Hashable {
        /// Nil for clients without an address, and for all new ones while there are too many.
        let address: PeerAddress?
        let reason: String
    }

    private struct Record {
        /// Seconds on the loop's clock.
        var since: Int32
        let told: Told
        /// The sentences since the last line, and how often each occurred.
        private(set) var untold: [(sentence: String, count: Int)] = []
        /// Refusals with sentences beyond those stored.
        private(set) var others = 0

        init(since: Int32, told: Told) {
            self.since = since
            self.told = told
        }

        mutating func count(_ why: String) {
            // Sentences that differ only in a number count as the same.
            if let place = untold.firstIndex(where: { RefusalLog.isAlike($0.sentence, why) }) {
                untold[place].count += 1
            } else if untold.count < RefusalLog.mostSentences {
                untold.append((RefusalLog.cut(why), 1))
            } else {
                others += 1
            }
        }
    }

    /// The facts about a refused client for a log line.
    private struct Told {
        let message: Logger.Message
        let peer: String
        /// Only for a line about a single refusal.
        var trace: TraceContext?
    }

    /// Seconds between two lines about the same subject.
    static let span: Int32 = 60
    /// The most subjects stored, each of about a hundred bytes, plus as many for each of its sentences.
    package static let capacity = 500
    /// Longer sentences are cut: some quote a client's request.
    private static let longest = 300
    /// Sentences per subject; each gets a line a minute.
    package static let mostSentences = 4

    private var records: [Subject: Record] = [:]
    private var tellsRestAt = Self.span

    package init() {}

    /// - Parameters:
    ///   - address: the client's, or that of the proxy that forwarded it.
    ///   - reason: one of a fixed set.
    ///   - second: on the loop's clock.
    ///   - trace: of the request, or of the upgrade that opened the socket.
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

    /// Called once a second. Logs the numbers of further refusals, and forgets subjects without any for a minute.
    package mutating func secondGoesBy(_ second: Int32, _ logger: Logger) {
        guard second >= tellsRestAt, !records.isEmpty else { return }
        // Not each second: that is often enough for lines that are a minute apart.
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

    /// Whether two sentences, the first of which may be cut, are equal except for their digits.
    private static func isAlike(_ one: String, _ other: String) -> Bool {
        func letters(_ text: String) -> some Sequence<UInt8> {
            text.utf8.lazy.filter { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.prefix(longest / 2)
        }
        return letters(one).elementsEqual(letters(other))
    }
}
