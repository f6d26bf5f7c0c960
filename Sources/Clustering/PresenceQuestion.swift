import Hub

/// A question to another hub about who is present (`PeerSubject.presence`).
enum PresenceQuestion: Equatable {
    /// The digests of each hub that the other one speaks for.
    case digests
    /// Some pieces of one of these hubs: as many as fit into an answer, in this order.
    case pieces(of: UInt64, PresencePieces, [Int])

    private enum Kind: UInt8 { case digests = 1, pieces }

    var encoded: [UInt8] {
        var out = RelayWriter()
        switch self {
        case .digests: out.byte(Kind.digests.rawValue)
        case .pieces(let hub, let pieces, let wanted):
            out.byte(Kind.pieces.rawValue)
            out.number(hub)
            out.number(pieces.bits)
            out.numbers(wanted)
        }
        return out.bytes
    }

    /// Nil for an unknown kind.
    init?(_ bytes: [UInt8]) throws(RelayReader.Malformed) {
        var fields = RelayReader(bytes[...])
        switch Kind(rawValue: try fields.byte()) {
        case nil: return nil
        case .digests: self = .digests
        case .pieces:
            let (hub, pieces) = (try fields.number(), PresencePieces(bits: try fields.count()))
            self = .pieces(of: hub, pieces, try fields.numbers(below: pieces.count))
        }
    }
}

/// The answer to a `PresenceQuestion`. It is valid right after the log message that its envelope names.
enum PresenceAnswer: Equatable {
    struct Digests: Equatable {
        let hub: UInt64
        let pieces: PresencePieces
        /// One for each piece.
        let digests: [UInt64]
    }

    case digests([Digests])
    case pieces(of: UInt64, PresencePieces, covered: [Int], ClusterState.Snapshot)

    private enum Kind: UInt8 { case digests = 1, pieces }

    /// - Parameter now: leases are sent as the time they have left.
    func encoded(at now: Int64) -> [UInt8] {
        var out = RelayWriter()
        switch self {
        case .digests(let hubs):
            out.byte(Kind.digests.rawValue)
            out.number(hubs.count)
            for hub in hubs {
                out.number(hub.hub)
                out.number(hub.pieces.bits)
                for digest in hub.digests { out.number(digest) }
            }
        case .pieces(let hub, let pieces, let covered, let snapshot):
            out.byte(Kind.pieces.rawValue)
            out.number(hub)
            out.number(pieces.bits)
            out.numbers(covered)
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

    /// Nil for an unknown kind.
    init?(_ bytes: [UInt8], at now: Int64) throws(RelayReader.Malformed) {
        var fields = RelayReader(bytes[...])
        switch Kind(rawValue: try fields.byte()) {
        case nil: return nil
        case .digests:
            var hubs: [Digests] = []
            for _ in 0..<(try fields.count()) {
                let (hub, pieces) = (try fields.number(), PresencePieces(bits: try fields.count()))
                var digests: [UInt64] = []
                for _ in 0..<pieces.count { digests.append(try fields.number()) }
                hubs.append(Digests(hub: hub, pieces: pieces, digests: digests))
            }
            self = .digests(hubs)
        case .pieces:
            let (hub, pieces) = (try fields.number(), PresencePieces(bits: try fields.count()))
            let covered = try fields.numbers(below: pieces.count)
            var snapshot = ClusterState.Snapshot()
            for _ in 0..<(try fields.count()) {
                let (channel, record, owner) = (try fields.channel(), try fields.present(), try fields.owner())
                let left = try fields.count()
                snapshot.members.append(
                    PresentMembers.Copy(
                        record: record, channel: channel, hub: owner.hub, turn: owner.turn,
                        lostUntil: left == 0 ? nil : now + Int64(clamping: left - 1)))
            }
            for _ in 0..<(try fields.count()) {
                let key = try fields.channel()
                let (limit, lifetime) = (try fields.count(), try fields.count())
                snapshot.wishes[key] = HistoryWish(limit: limit, lifetime: Int64(lifetime))
            }
            self = .pieces(of: hub, pieces, covered: covered, snapshot)
        }
    }
}

extension RelayWriter {
    fileprivate mutating func numbers(_ numbers: [Int]) {
        number(numbers.count)
        for value in numbers { number(value) }
    }
}

extension RelayReader {
    fileprivate mutating func numbers(below end: Int) throws(Malformed) -> [Int] {
        var numbers: [Int] = []
        for _ in 0..<(try count()) {
            let value = try count()
            guard value < end else { throw Malformed() }
            numbers.append(value)
        }
        return numbers
    }
}

/// Updates this hub's copy of another hub's state: first finds which pieces differ, then requests them one answer after the other.
///
/// Pure. It ends when everything has been requested, or when an answer brings nothing that was wanted; what is still
/// missing then shows in the digests of beats.
struct PresencePull {
    private var wanted: [(hub: UInt64, pieces: PresencePieces, numbers: [Int])] = []

    /// The next question; nil if there is none.
    var next: PresenceQuestion? {
        wanted.first.map { .pieces(of: $0.hub, $0.pieces, Array($0.numbers.prefix(Self.mostNumbers))) }
    }

    private static let mostNumbers = 4096

    /// Decodes an answer; nil for an unknown kind. After an unreadable one, nothing more is requested: the same
    /// question would bring the same answer, at once and without end. The next beat shows that something is missing.
    mutating func read(_ answer: [UInt8], at now: Int64) throws(RelayReader.Malformed) -> PresenceAnswer? {
        do throws(RelayReader.Malformed) {
            return try PresenceAnswer(answer, at: now)
        } catch {
            wanted = []
            throw error
        }
    }

    /// Finds the pieces of a hub that differ here.
    mutating func compare(_ theirs: PresenceAnswer.Digests, with own: [UInt64]) {
        let numbers = zip(theirs.digests, own).enumerated().filter { $0.element.0 != $0.element.1 }.map(\.offset)
        if !numbers.isEmpty { wanted.append((theirs.hub, theirs.pieces, numbers)) }
    }

    /// - Returns: whether this was requested.
    mutating func came(_ covered: [Int], of hub: UInt64, in pieces: PresencePieces) -> Bool {
        guard var first = wanted.first, first.hub == hub, first.pieces == pieces else { return false }
        let (before, came) = (first.numbers.count, Set(covered))
        first.numbers.removeAll { came.contains($0) }
        wanted[0] = first
        if first.numbers.isEmpty { wanted.removeFirst() }
        return first.numbers.count < before
    }
}
