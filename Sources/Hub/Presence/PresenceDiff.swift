import OrderedCollections
package import Wire

/// A change of a channel's presence.
package struct PresenceDiff: Sendable, Equatable {
    package var joins: [PresenceMeta] = []
    package var leaves: [PresenceMeta] = []

    package init() {}

    /// True when the change is invisible to watchers.
    var showsNothing: Bool { !joins.contains(where: \.isListed) && !leaves.contains(where: \.isListed) }

    /// Splits the change into parts of about the size limit of a list: Python clients accept no larger message. A leave
    /// stays with the join that replaces it, so that no member seems gone in between.
    func parts(upTo limit: Int) -> [PresenceDiff] {
        let size = joins.reduce(0) { $0 + $1.listedBytes } + leaves.reduce(0) { $0 + $1.listedBytes }
        guard size > limit else { return [self] }
        var parts: [PresenceDiff] = []
        var part = PresenceDiff()
        var filled = 0
        func appendPair(_ joining: PresenceMeta?, _ leaving: PresenceMeta?) {
            let bytes = (joining?.listedBytes ?? 0) + (leaving?.listedBytes ?? 0)
            if filled > 0, filled + bytes > limit {
                parts.append(part)
                part = PresenceDiff()
                filled = 0
            }
            filled += bytes
            if let joining { part.joins.append(joining) }
            if let leaving { part.leaves.append(leaving) }
        }
        var left = Dictionary(leaves.map { ($0.member, $0) }) { first, _ in first }
        for meta in joins { appendPair(meta, left.removeValue(forKey: meta.member)) }
        for meta in leaves where left[meta.member] != nil { appendPair(nil, meta) }
        if filled > 0 { parts.append(part) }
        return parts
    }

    /// The payload of `presence_diff`: both keys always present.
    package func encoded() -> [UInt8] {
        var out = Array("{\"joins\":".utf8)
        Self.encode(joins, into: &out)
        out += ",\"leaves\":".utf8
        Self.encode(leaves, into: &out)
        out.append(UInt8(ascii: "}"))
        return out
    }

    /// `{key: {"metas": […]}, …}`.
    static func encode(_ metas: some Sequence<PresenceMeta>, into out: inout [UInt8]) {
        // Grouped by the keys' bytes: Swift equates strings that look alike, but for clients they are two keys.
        var byKey: OrderedDictionary<[UInt8], [PresenceMeta]> = [:]
        for meta in metas where meta.isListed { byKey[JSONString.encode(meta.key), default: []].append(meta) }
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

/// A member's tracked state (Phoenix: a presence meta).
package struct PresenceMeta: Sendable, Equatable {
    package let member: MemberID
    package let key: String
    /// Unique per track; clients match metas by it.
    package let ref: Name
    /// The member's own JSON object, as sent; empty if the member is only counted.
    package let payload: [UInt8]
    /// The ref that this one replaces when a member tracks again.
    package var previousRef: Name?

    package init(member: MemberID, key: String, ref: Name, payload: [UInt8], previousRef: Name? = nil) {
        self.member = member
        self.key = key
        self.ref = ref
        self.payload = payload
        self.previousRef = previousRef
    }

    /// Whether others see the member. A member that comes when a channel's list is full is only counted.
    package var isListed: Bool { !payload.isEmpty }

    /// An upper bound on what it adds to a `presence_state`: its payload, its key as JSON, two refs, and 45 bytes
    /// around them.
    var listedBytes: Int { isListed ? payload.count + JSONString.encodedCount(key) + 2 * ref.utf8.count + 64 : 0 }

    /// A copy that is only counted.
    var unlisted: PresenceMeta { PresenceMeta(member: member, key: key, ref: ref, payload: []) }

    /// Writes the member's object with `phx_ref` added. The hub's keys come last: if a payload brings the same keys,
    /// every client uses the last one.
    func encode(into out: inout [UInt8]) {
        let end = payload.lastIndex(of: UInt8(ascii: "}")) ?? payload.startIndex
        let inner = payload[..<end]
        out += inner
        if inner.dropFirst().contains(where: { $0 > 0x20 }) { out.append(UInt8(ascii: ",")) }
        out += "\"phx_ref\":".utf8
        JSONString.encode(ref.text, into: &out)
        if let previousRef {
            out += ",\"phx_ref_prev\":".utf8
            JSONString.encode(previousRef.text, into: &out)
        }
        out.append(UInt8(ascii: "}"))
    }
}
