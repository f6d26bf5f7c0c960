import Hub

/// Divides a hub's state into pieces by the first bits of a hash, which is the same on every hub.
///
/// A hub's digest shows whether another hub's copy is complete; the digests of its pieces show which ones differ. Only these are sent, one
/// after the other. So a copy of any size fits through a link that takes 8 MiB, and pieces that arrived before the link failed are kept.
struct PresencePieces: Equatable {
    /// 0...`mostBits`.
    let bits: Int

    static let mostBits = 14
    /// The approximate content of one piece.
    private static let membersOfOne = 64
    private static let bytesOfOne = 64 << 10

    init(bits: Int) { self.bits = min(max(0, bits), Self.mostBits) }

    /// Makes enough pieces to keep each of them small.
    init(members: Int, bytes: Int) {
        let wanted = max(members / Self.membersOfOne, bytes / Self.bytesOfOne)
        self.init(bits: wanted < 1 ? 0 : Int.bitWidth - wanted.leadingZeroBitCount)
    }

    var count: Int { 1 << bits }

    /// The piece that a hash belongs to.
    func pieceNumber(of hash: UInt64) -> Int { bits == 0 ? 0 : Int(hash >> UInt64(64 - bits)) }

    func pieceNumber(of name: PeerMessage.MemberName) -> Int { pieceNumber(of: PresentMembers.hash(name)) }

    func pieceNumber(of key: ChannelKey) -> Int {
        pieceNumber(of: ClusterState.hash(key, HistoryWish(limit: 0, lifetime: 0)))
    }
}

extension ClusterState {
    /// The pieces for the known state of a hub.
    func pieces(of hub: UInt64) -> PresencePieces {
        var (count, bytes) = (wishes[hub]?.count ?? 0, 0)
        forEachRecord(of: hub) { record in
            count += 1
            bytes += record.payload.count + record.key.utf8.count
        }
        return PresencePieces(members: count, bytes: bytes)
    }

    /// The digest of each piece of a hub's state; for this hub, including messages that the log has not returned yet.
    func digests(of hub: UInt64, in pieces: PresencePieces) -> [UInt64] {
        var digests = [UInt64](repeating: 0, count: pieces.count)
        forEachRecord(of: hub) { record in
            digests[pieces.pieceNumber(of: record.member)] ^= PresentMembers.hash(record)
        }
        for (key, wish) in wishes[hub] ?? [:] { digests[pieces.pieceNumber(of: key)] ^= Self.hash(key, wish) }
        return digests
    }

    /// The known state of a hub in some of its pieces.
    ///
    /// - Parameters:
    ///   - wanted: the pieces, in this order.
    ///   - mostBytes: approximate limit, after which no further piece is begun.
    /// - Returns: the pieces that are covered, at least the first of the wanted ones.
    func snapshot(
        of hub: UInt64, in pieces: PresencePieces, _ wanted: [Int], mostBytes: Int
    ) -> (covered: [Int], Snapshot) {
        var groups = Dictionary(wanted.map { ($0, [PeerMessage.MemberName]()) }, uniquingKeysWith: { one, _ in one })
        forEachRecord(of: hub) { groups[pieces.pieceNumber(of: $0.member)]?.append($0.member) }
        var (snapshot, covered, bytes) = (Snapshot(), [Int](), 0)
        for number in wanted {
            guard covered.isEmpty || bytes < mostBytes else { break }
            covered.append(number)
            for name in groups.removeValue(forKey: number) ?? [] {
                guard let copy = copy(of: name, on: hub) else { continue }
                snapshot.members.append(copy)
                bytes += copy.record.payload.count + copy.record.key.utf8.count + copy.channel.topic.utf8.count + 80
            }
        }
        let isCovered = Set(covered)
        snapshot.wishes = (wishes[hub] ?? [:]).filter { isCovered.contains(pieces.pieceNumber(of: $0.key)) }
        return (covered, snapshot)
    }

    private func forEachRecord(of hub: UInt64, _ body: (PeerMessage.PresentMember) -> Void) {
        guard hub == boot else { return members.forEach(of: hub) { body($0.record) } }
        for mine in own.values { body(mine.record) }
    }

    /// A member as other hubs should know it; this hub's own members as the loops have them.
    private func copy(of name: PeerMessage.MemberName, on hub: UInt64) -> PresentMembers.Copy? {
        guard hub == boot else { return members[name] }
        guard let mine = own[name] else { return nil }
        let copy = members[name]
        return PresentMembers.Copy(
            record: mine.record, channel: mine.channel, hub: boot, turn: copy.map { owner(of: $0).turn } ?? 0,
            lostUntil: copy?.lostUntil)
    }

    /// Replaces what was known about some pieces of a hub with the full content that was reported.
    ///
    /// - Parameter isOfDead: another hub reports it, because this one is taken for dead.
    mutating func replaceCopy(
        _ hub: UInt64, in pieces: PresencePieces, _ covered: [Int], by snapshot: Snapshot, isOfDead: Bool = false,
        _ out: inout [Output]
    ) {
        let isCovered = Set(covered)
        let said = snapshot.members.filter { isCovered.contains(pieces.pieceNumber(of: $0.record.member)) }
        let (joined, left) = members.replace(membersOf: hub, by: said, isOfDead: isOfDead) {
            isCovered.contains(pieces.pieceNumber(of: $0))
        }
        var diffs: [ChannelKey: PresenceDiff] = [:]
        for copy in left {
            withdrawLease(copy, &out)
            diffs[copy.channel, default: PresenceDiff()].leaves.append(presenceMeta(copy.record))
        }
        for copy in joined { diffs[copy.channel, default: PresenceDiff()].joins.append(presenceMeta(copy.record)) }
        for (key, diff) in diffs { out.append(.hear(.presence(key, diff))) }
        for copy in said {
            withdrawLease(copy, &out)
            if let until = copy.lostUntil { offerLease(copy, until: until, &out) }
        }
        let before = (wishes[hub] ?? [:]).filter { isCovered.contains(pieces.pieceNumber(of: $0.key)) }
        let after = snapshot.wishes.filter { isCovered.contains(pieces.pieceNumber(of: $0.key)) }
        for (key, wish) in after where before[key] != wish {
            wishes[hub, default: [:]][key] = wish
            out.append(.keep(key, wish, hub: hub))
        }
        for key in before.keys where after[key] == nil {
            wishes[hub]?[key] = nil
            out.append(.keep(key, nil, hub: hub))
        }
        if wishes[hub]?.isEmpty == true { wishes[hub] = nil }
    }
}
