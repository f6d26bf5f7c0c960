import ChangeFeed

/// What a client has that applies changes to the rows it began with.
struct ChangeReplay {
    private(set) var faults: [String] = []
    private var byKey: [String: [String]] = [:]
    private let key: String?

    init(_ rows: [String], key: String?, _ seen: [Collector.Seen]) {
        self.key = key
        for row in rows { byKey[name(row), default: []].append(row) }
        for change in seen {
            if let old = change.old {
                let known = byKey[name(old)] ?? []
                if let index = known.firstIndex(of: old) {
                    byKey[name(old)]?.remove(at: index)
                } else {
                    faults.append("\(change.line): had \(known)")
                    byKey[name(old)] = nil
                }
            }
            if let record = change.record {
                if key != nil, let there = byKey[name(record)]?.first { faults.append("\(change.line): had \(there)") }
                byKey[name(record), default: []].append(record)
            }
        }
    }

    var rows: [String] { byKey.values.joined().sorted() }

    private func name(_ row: String) -> String {
        guard let key, let range = row.range(of: "\"\(key)\":") else { return row }
        return String(row[range.upperBound...].prefix { $0 != "," && $0 != "}" })
    }
}

extension Database {
    /// Texts of one column, sorted.
    func rows(_ query: String) throws -> [String] {
        try session().queryRows(query).compactMap { $0.first.flatMap { $0 } }.sorted()
    }

    /// Waits until all that is committed by now was read.
    func settle(_ feed: ChangeFeed, _ collector: Collector) throws {
        try run("notify roost")
        let polls = feed.statistics.polls
        try eventually("another poll") { feed.statistics.polls > polls + 1 }
    }
}
