import OrderedCollections
import Wire

/// A change of a channel's presence.
package struct PresenceDiff: Sendable, Equatable {
    package var joins: [PresenceMeta] = []
    package var leaves: [PresenceMeta] = []

    package init() {}

    /// Nothing that anybody would be shown.
    var showsNothing: Bool { !joins.contains(where: \.isListed) && !leaves.contains(where: \.isListed) }

    /// The same as several, of which each is about as large as a list may be: Python clients take no larger message. What
    /// leaves goes with what comes in its place, so that nobody is gone in between.
    func parts(upTo limit: Int) -> [PresenceDiff] {
        let size = joins.reduce(0) { $0 + $1.listedBytes } + leaves.reduce(0) { $0 + $1.listedBytes }
        guard size > limit else { return [self] }
        var parts: [PresenceDiff] = []
        var part = PresenceDiff()
        var filled = 0
        func add(_ joining: PresenceMeta?, _ leaving: PresenceMeta?) {
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
        for meta in joins { add(meta, left.removeValue(forKey: meta.member)) }
        for meta in leaves where left[meta.member] != nil { add(nil, meta) }
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
        // By the keys' bytes: to Swift strings that look alike are equal, to clients they are two keys.
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
