import OrderedCollections
import Wire

/// Who is present in a channel. Every loop keeps a whole copy: its own members' changes are applied here first and
/// relayed, the others' arrive in the order they were made.
///
/// The copy has two layers: what the loop's watchers were told, and the news that they are told next. So a change may wait
/// for others to go with it, and whoever asks for the state in between gets what the others have, and the news with them.
package struct PresenceList {
    private var known: OrderedDictionary<MemberID, PresenceMeta> = [:]
    /// The newest word on each member; nil: gone.
    private var news: OrderedDictionary<MemberID, PresenceMeta?> = [:]
    private var encoded: [UInt8]?
    /// Metas by the bytes of their key.
    private var keys: [[UInt8]: Int] = [:]
    package private(set) var count = 0
    package private(set) var listedCount = 0
    package private(set) var listedBytes = 0

    package init() {}

    package var isEmpty: Bool { count == 0 && news.isEmpty }
    package var hasNews: Bool { !news.isEmpty }
    /// Distinct keys.
    package var keyCount: Int { keys.count }

    package subscript(member: MemberID) -> PresenceMeta? {
        if let word = news[member] { return word }
        return known[member]
    }

    /// What changes if a member says this of itself. Nil where it said the same before: nobody needs to hear it again.
    package func tracking(_ meta: PresenceMeta) -> PresenceDiff? {
        let old = self[meta.member]
        if let old, Self.saysTheSame(old.payload, meta.payload) { return nil }
        var diff = PresenceDiff()
        var meta = meta
        meta.previousRef = old?.ref
        diff.joins = [meta]
        if let old { diff.leaves = [old] }
        return diff
    }

    package func untracking(_ member: MemberID) -> PresenceDiff? {
        guard let old = self[member] else { return nil }
        var diff = PresenceDiff()
        diff.leaves = [old]
        return diff
    }

    /// Whether two payloads are one to whoever reads them. Some clients write the keys of an object in another order
    /// every time.
    static func saysTheSame(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one == other || !one.isEmpty && !other.isEmpty && JSON(trusted: one[...]).isEqual(to: JSON(trusted: other[...]))
    }

    package mutating func apply(_ diff: PresenceDiff) {
        for meta in diff.joins { put(meta, meta.member) }
        for meta in diff.leaves where self[meta.member]?.ref == meta.ref { put(nil, meta.member) }
    }

    private mutating func put(_ meta: PresenceMeta?, _ member: MemberID) {
        if let old = self[member] { count(old, by: -1) }
        if let meta { count(meta, by: 1) }
        if meta == nil, known[member] == nil {
            news[member] = nil
        } else {
            news.updateValue(meta, forKey: member)
        }
    }

    private mutating func count(_ meta: PresenceMeta, by step: Int) {
        count += step
        if meta.isListed { listedCount += step }
        listedBytes += step * meta.listedBytes
        let key = Array(meta.key.utf8)
        let left = (keys[key] ?? 0) + step
        keys[key] = left == 0 ? nil : left
    }

    /// The news, as one difference to what the watchers know; from here on they know it.
    package mutating func takeNews() -> PresenceDiff {
        var diff = PresenceDiff()
        for (member, word) in news {
            let old = known[member]
            guard old?.ref != word?.ref else { continue }
            if let old { diff.leaves.append(old) }
            if var meta = word {
                // Of several steps that are told as one, the watchers know only the first one's origin.
                meta.previousRef = old?.ref
                diff.joins.append(meta)
                known[member] = meta
            } else {
                known[member] = nil
            }
        }
        news.removeAll(keepingCapacity: news.count < 64)
        encoded = nil
        return diff
    }

    /// All who are present, whether the watchers were told or not, in no order.
    func forEach(_ body: (PresenceMeta) -> Void) {
        for (member, meta) in known where news.index(forKey: member) == nil { body(meta) }
        for case let meta? in news.values { body(meta) }
    }

    /// Some of those whom the watchers were told of.
    func first(_ limit: Int) -> [PresenceMeta] { Array(known.values.prefix(limit)) }

    /// The payload of `presence_state`, kept until the next change: a crowd that joins at once costs one encoding.
    package mutating func state() -> [UInt8] {
        if let encoded { return encoded }
        var out: [UInt8] = []
        PresenceDiff.encode(known.values, into: &out)
        encoded = out
        return out
    }
}
