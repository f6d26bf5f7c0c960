import OrderedCollections
import Wire

/// The members present in a channel. Every loop keeps a full copy: its own members' changes are applied here first and
/// relayed, the others' arrive in the order they were made.
///
/// The copy has two layers: what the loop's watchers were told, and the news that they will be told next. So a change
/// may be withheld to be sent with others, and a member that asks for the state in between gets what the others have,
/// and later the news with them.
package struct PresenceList {
    private var known: OrderedDictionary<MemberID, PresenceMeta> = [:]
    /// The latest change for each member; nil: gone.
    private var news: OrderedDictionary<MemberID, PresenceMeta?> = [:]
    private var encoded: [UInt8]?
    /// The number of metas for each key, by its bytes.
    private var keys: [[UInt8]: Int] = [:]
    package private(set) var count = 0
    package private(set) var listedCount = 0
    package private(set) var listedBytes = 0

    package init() {}

    package var isEmpty: Bool { count == 0 && news.isEmpty }
    package var hasNews: Bool { !news.isEmpty }
    /// The number of distinct keys.
    package var keyCount: Int { keys.count }

    package subscript(member: MemberID) -> PresenceMeta? {
        if let word = news[member] { return word }
        return known[member]
    }

    /// Returns the change made by tracking this meta; nil if it says the same as before, so that no client needs to
    /// hear it again.
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

    /// Whether two payloads mean the same. Some clients write an object's keys in a different order every time.
    static func saysTheSame(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one == other || !one.isEmpty && !other.isEmpty && JSON(trusted: one[...]).isEqual(to: JSON(trusted: other[...]))
    }

    package mutating func applyDiff(_ diff: PresenceDiff) {
        for meta in diff.joins { setMeta(meta, meta.member) }
        for meta in diff.leaves where self[meta.member]?.ref == meta.ref { setMeta(nil, meta.member) }
    }

    private mutating func setMeta(_ meta: PresenceMeta?, _ member: MemberID) {
        if let old = self[member] { countMeta(old, by: -1) }
        if let meta { countMeta(meta, by: 1) }
        if meta == nil, known[member] == nil {
            news[member] = nil
        } else {
            news.updateValue(meta, forKey: member)
        }
    }

    private mutating func countMeta(_ meta: PresenceMeta, by step: Int) {
        count += step
        if meta.isListed { listedCount += step }
        listedBytes += step * meta.listedBytes
        let key = Array(meta.key.utf8)
        let left = (keys[key] ?? 0) + step
        keys[key] = left == 0 ? nil : left
    }

    /// Removes and returns the news, as one diff to what the watchers know; it counts as known to them afterwards.
    package mutating func takeNews() -> PresenceDiff {
        var diff = PresenceDiff()
        for (member, word) in news {
            let old = known[member]
            guard old?.ref != word?.ref else { continue }
            if let old { diff.leaves.append(old) }
            if var meta = word {
                // Watchers know only the origin of the first of several steps that are sent as one.
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

    /// Visits all presences, whether the watchers know them or not, in no particular order.
    func forEach(_ body: (PresenceMeta) -> Void) {
        for (member, meta) in known where news.index(forKey: member) == nil { body(meta) }
        for case let meta? in news.values { body(meta) }
    }

    /// Returns some of the presences known to the watchers.
    func first(_ limit: Int) -> [PresenceMeta] { Array(known.values.prefix(limit)) }

    /// Returns the payload of `presence_state`, cached until the next change: a crowd that joins at once costs one
    /// encoding.
    package mutating func state() -> [UInt8] {
        if let encoded { return encoded }
        var out: [UInt8] = []
        PresenceDiff.encode(known.values, into: &out)
        encoded = out
        return out
    }
}
