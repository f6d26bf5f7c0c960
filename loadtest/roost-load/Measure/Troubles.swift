/// What sockets met with that they should not, by sentence.
struct Troubles: Codable, Sendable {
    private static let most = 24
    private(set) var counts: [String: Int] = [:]
    private(set) var total = 0

    mutating func add(_ sentence: String, _ count: Int = 1) {
        total += count
        // A hub that words each refusal differently must not fill the report.
        let known = counts[sentence] != nil || counts.count < Self.most
        counts[known ? sentence : "something else", default: 0] += count
    }

    mutating func add(_ other: Troubles) {
        for (sentence, count) in other.counts { add(sentence, count) }
    }

    /// The most frequent first.
    var sentences: [String] {
        counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) × \($0.key)." }
    }
}
