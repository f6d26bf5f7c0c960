import OrderedCollections
import Wire

/// One member of one channel; unique among the loops of a process.
package struct MemberID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// What one member says of itself (Phoenix: a presence meta).
package struct PresenceMeta: Sendable, Equatable {
    package let member: MemberID
    package let key: String
    /// Unique per track; clients join and match metas by it.
    package let ref: String
    /// The member's own JSON object, as sent.
    package let payload: [UInt8]
    /// The ref this one replaces, on a re-track.
    package let previousRef: String?

    /// The member's object with `phx_ref` added. The hub's keys come last: where a payload brings the same keys, the
    /// last one counts for every client.
    func encode(into out: inout [UInt8]) {
        let end = payload.lastIndex(of: UInt8(ascii: "}")) ?? payload.startIndex
        let inner = payload[..<end]
        out += inner
        if inner.dropFirst().contains(where: { $0 > 0x20 }) { out.append(UInt8(ascii: ",")) }
        out += "\"phx_ref\":".utf8
        JSONString.encode(ref, into: &out)
        if let previousRef {
            out += ",\"phx_ref_prev\":".utf8
            JSONString.encode(previousRef, into: &out)
        }
        out.append(UInt8(ascii: "}"))
    }
}

/// A change of a channel's presence, told to its watchers on every loop.
package struct PresenceDiff: Sendable, Equatable {
    package var joins: [PresenceMeta] = []
    package var leaves: [PresenceMeta] = []

    package init() {}

    /// The payload of `presence_diff`: both keys always present.
    package func encoded() -> [UInt8] {
        var out = Array("{\"joins\":".utf8)
        Presence.encode(joins, into: &out)
        out += ",\"leaves\":".utf8
        Presence.encode(leaves, into: &out)
        out.append(UInt8(ascii: "}"))
        return out
    }
}

/// Who is present in a channel. Every loop keeps a whole copy: its own members' changes are applied here first and
/// relayed, the others' arrive in the order they were made.
struct Presence {
    private var metas: OrderedDictionary<MemberID, PresenceMeta> = [:]
    private var encoded: [UInt8]?

    var isEmpty: Bool { metas.isEmpty }
    var count: Int { metas.count }

    /// Adds or replaces a member's meta. Nil where it said the same before: nobody needs to hear it again.
    mutating func track(_ member: MemberID, key: String, payload: [UInt8], ref: String) -> PresenceDiff? {
        let old = metas[member]
        if old?.payload == payload { return nil }
        var diff = PresenceDiff()
        diff.joins = [PresenceMeta(member: member, key: key, ref: ref, payload: payload, previousRef: old?.ref)]
        if let old { diff.leaves = [old] }
        apply(diff)
        return diff
    }

    mutating func untrack(_ member: MemberID) -> PresenceDiff? {
        guard let old = metas[member] else { return nil }
        var diff = PresenceDiff()
        diff.leaves = [old]
        apply(diff)
        return diff
    }

    mutating func apply(_ diff: PresenceDiff) {
        for meta in diff.joins { metas[meta.member] = meta }
        for meta in diff.leaves where metas[meta.member]?.ref == meta.ref { metas[meta.member] = nil }
        encoded = nil
    }

    /// The payload of `presence_state`, kept until the next change: a crowd that joins at once costs one encoding.
    mutating func state() -> [UInt8] {
        if let encoded { return encoded }
        var out: [UInt8] = []
        Self.encode(Array(metas.values), into: &out)
        encoded = out
        return out
    }

    /// `{key: {"metas": […]}, …}`.
    static func encode(_ metas: [PresenceMeta], into out: inout [UInt8]) {
        // By the keys' bytes: to Swift strings that look alike are equal, to clients they are two keys.
        var byKey: OrderedDictionary<[UInt8], [PresenceMeta]> = [:]
        for meta in metas { byKey[JSONString.encode(meta.key), default: []].append(meta) }
        out.append(UInt8(ascii: "{"))
        for (position, (key, metas)) in byKey.enumerated() {
            if position > 0 { out.append(UInt8(ascii: ",")) }
            out += key
            out += ":{\"metas\":[".utf8
            for (index, meta) in metas.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                meta.encode(into: &out)
            }
            out += "]}".utf8
        }
        out.append(UInt8(ascii: "}"))
    }
}
