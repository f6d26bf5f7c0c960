import Wire

/// What one member says of itself (Phoenix: a presence meta).
package struct PresenceMeta: Sendable, Equatable {
    package let member: MemberID
    package let key: String
    /// Unique per track; clients join and match metas by it.
    package let ref: String
    /// The member's own JSON object, as sent; empty where the member is only counted.
    package let payload: [UInt8]
    /// The ref this one replaces, on a re-track.
    package var previousRef: String?

    package init(member: MemberID, key: String, ref: String, payload: [UInt8], previousRef: String? = nil) {
        self.member = member
        self.key = key
        self.ref = ref
        self.payload = payload
        self.previousRef = previousRef
    }

    /// Whether others are shown it. Who comes when a channel's list is full is counted, and that is all.
    package var isListed: Bool { !payload.isEmpty }

    /// At most what it adds to a `presence_state`: its payload, its key as JSON, two refs, and 45 bytes around them.
    var listedBytes: Int { isListed ? payload.count + JSONString.encodedCount(key) + 2 * ref.utf8.count + 64 : 0 }

    /// The same without what others would be shown.
    var unlisted: PresenceMeta { PresenceMeta(member: member, key: key, ref: ref, payload: []) }

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
