import Hub

/// What one hub tells another one alone.
enum DirectPayload: Equatable {
    /// "What do you have?"
    case askSnapshot
    /// All that a hub has, by its process, in parts. It is true behind the message that its envelope names.
    case snapshot(hub: UInt64, part: Int, of: Int, ClusterState.Snapshot)
    /// About a subject (`PeerSubject`); its answer has the same number.
    case question(id: UInt64, subject: UInt8, [UInt8])
    /// Nil where the hub has none to give, as it does not know the subject.
    case answer(id: UInt64, [UInt8]?)

    private enum Kind: UInt8 { case askSnapshot = 1, snapshot, question, answer }

    /// Members of a part.
    static let partCount = 500

    /// - Parameter now: leases go with what is left of them.
    func encoded(at now: Int64) -> [UInt8] {
        var out = RelayWriter()
        switch self {
        case .askSnapshot: out.byte(Kind.askSnapshot.rawValue)
        case .question(let id, let subject, let body):
            out.byte(Kind.question.rawValue)
            out.number(id)
            out.byte(subject)
            out.data(body)
        case .answer(let id, let body):
            out.byte(Kind.answer.rawValue)
            out.number(id)
            out.optional(body)
        case .snapshot(let hub, let part, let parts, let snapshot):
            out.byte(Kind.snapshot.rawValue)
            out.number(hub)
            out.number(part)
            out.number(parts)
            out.number(snapshot.members.count)
            for copy in snapshot.members {
                out.channel(copy.channel)
                out.present(copy.record)
                out.owner(copy.owner)
                out.number(copy.lostUntil.map { Int(max(0, $0 - now)) + 1 } ?? 0)
            }
            out.number(snapshot.wishes.count)
            for (key, wish) in snapshot.wishes {
                out.channel(key)
                out.number(wish.limit)
                out.number(Int(wish.lifetime))
            }
        }
        return out.bytes
    }

    /// Nil for a kind that this hub does not know.
    init?(_ bytes: ArraySlice<UInt8>, at now: Int64) throws(RelayReader.Malformed) {
        var fields = RelayReader(bytes)
        switch Kind(rawValue: try fields.byte()) {
        case nil: return nil
        case .askSnapshot: self = .askSnapshot
        case .question:
            self = .question(id: try fields.number(), subject: try fields.byte(), Array(try fields.data()))
        case .answer: self = .answer(id: try fields.number(), try fields.optional().map { Array($0) })
        case .snapshot:
            let (hub, part, parts) = (try fields.number(), try fields.count(), try fields.count())
            var snapshot = ClusterState.Snapshot()
            for _ in 0..<(try fields.count()) {
                let (channel, record, owner) = (try fields.channel(), try fields.present(), try fields.owner())
                let left = try fields.count()
                snapshot.members.append(
                    PresentMembers.Copy(
                        record: record, channel: channel, hub: owner.hub, turn: owner.turn,
                        lostUntil: left == 0 ? nil : now + Int64(left - 1)))
            }
            for _ in 0..<(try fields.count()) {
                let key = try fields.channel()
                let (limit, lifetime) = (try fields.count(), try fields.count())
                snapshot.wishes[key] = HistoryWish(limit: limit, lifetime: Int64(lifetime))
            }
            guard part < parts else { throw RelayReader.Malformed() }
            self = .snapshot(hub: hub, part: part, of: parts, snapshot)
        }
    }

    /// The parts of all that a hub has.
    static func parts(of snapshot: ClusterState.Snapshot, hub: UInt64) -> [DirectPayload] {
        let count = max(1, (snapshot.members.count + partCount - 1) / partCount)
        return (0..<count).map { part in
            let members = snapshot.members[(part * partCount)..<min(snapshot.members.count, (part + 1) * partCount)]
            let wishes = part == 0 ? snapshot.wishes : [:]
            return .snapshot(hub: hub, part: part, of: count, .init(members: Array(members), wishes: wishes))
        }
    }
}

/// Parts of a snapshot that are not all there yet.
struct SnapshotParts {
    private var all = ClusterState.Snapshot()
    private var next = 0

    /// - Returns: the whole, with its last part; nil before, and where a part is missing.
    mutating func add(_ part: Int, of count: Int, _ snapshot: ClusterState.Snapshot) -> ClusterState.Snapshot? {
        if part == 0 { self = SnapshotParts() }
        guard part == next else { return nil }
        next += 1
        all.members += snapshot.members
        all.wishes.merge(snapshot.wishes) { $1 }
        guard next == count else { return nil }
        defer { self = SnapshotParts() }
        return all
    }
}
