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
        case .digests: out.appendByte(Kind.digests.rawValue)
        case .pieces(let hub, let pieces, let wanted):
            out.appendByte(Kind.pieces.rawValue)
            out.appendNumber(hub)
            out.appendNumber(pieces.bits)
            out.appendNumbers(wanted)
        }
        return out.bytes
    }

    /// Nil for an unknown kind.
    init?(_ bytes: [UInt8]) throws(RelayReader.Malformed) {
        var fields = RelayReader(bytes[...])
        switch Kind(rawValue: try fields.readByte()) {
        case nil: return nil
        case .digests: self = .digests
        case .pieces:
            let (hub, pieces) = (try fields.readNumber(), PresencePieces(bits: try fields.readCount()))
            self = .pieces(of: hub, pieces, try fields.readNumbers(below: pieces.count))
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
            out.appendByte(Kind.digests.rawValue)
            out.appendNumber(hubs.count)
            for hub in hubs {
                out.appendNumber(hub.hub)
                out.appendNumber(hub.pieces.bits)
                for digest in hub.digests { out.appendNumber(digest) }
            }
        case .pieces(let hub, let pieces, let covered, let snapshot):
            out.appendByte(Kind.pieces.rawValue)
            out.appendNumber(hub)
            out.appendNumber(pieces.bits)
            out.appendNumbers(covered)
            out.appendNumber(snapshot.members.count)
            for copy in snapshot.members {
                out.appendChannel(copy.channel)
                out.appendPresentMember(copy.record)
                out.appendOwner(copy.owner)
                out.appendNumber(copy.lostUntil.map { Int(max(0, $0 - now)) + 1 } ?? 0)
            }
            out.appendNumber(snapshot.wishes.count)
            for (key, wish) in snapshot.wishes {
                out.appendChannel(key)
                out.appendNumber(wish.limit)
                out.appendNumber(Int(wish.lifetime))
            }
        }
        return out.bytes
    }

    /// Nil for an unknown kind.
    init?(_ bytes: [UInt8], at now: Int64) throws(RelayReader.Malformed) {
        var fields = RelayReader(bytes[...])
        switch Kind(rawValue: try fields.readByte()) {
        case nil: return nil
        case .digests:
            var hubs: [Digests] = []
            for _ in 0..<(try fields.readCount()) {
                let (hub, pieces) = (try fields.readNumber(), PresencePieces(bits: try fields.readCount()))
                var digests: [UInt64] = []
                for _ in 0..<pieces.count { digests.append(try fields.readNumber()) }
                hubs.append(Digests(hub: hub, pieces: pieces, digests: digests))
            }
            self = .digests(hubs)
        case .pieces:
            let (hub, pieces) = (try fields.readNumber(), PresencePieces(bits: try fields.readCount()))
            let covered = try fields.readNumbers(below: pieces.count)
            var snapshot = ClusterState.Snapshot()
            for _ in 0..<(try fields.readCount()) {
                let (channel, record, owner) = (
                    try fields.readChannel(), try fields.readPresentMember(), try fields.readOwner()
                )
                let left = try fields.readCount()
                snapshot.members.append(
                    PresentMembers.Copy(
                        record: record, channel: channel, hub: owner.hub, turn: owner.turn,
                        lostUntil: left == 0 ? nil : now + Int64(clamping: left - 1)))
            }
            for _ in 0..<(try fields.readCount()) {
                let key = try fields.readChannel()
                let (limit, lifetime) = (try fields.readCount(), try fields.readCount())
                snapshot.wishes[key] = HistoryWish(limit: limit, lifetime: Int64(lifetime))
            }
            self = .pieces(of: hub, pieces, covered: covered, snapshot)
        }
    }
}

extension RelayWriter {
    fileprivate mutating func appendNumbers(_ numbers: [Int]) {
        appendNumber(numbers.count)
        for value in numbers { appendNumber(value) }
    }
}

extension RelayReader {
    fileprivate mutating func readNumbers(below end: Int) throws(Malformed) -> [Int] {
        var numbers: [Int] = []
        for _ in 0..<(try readCount()) {
            let value = try readCount()
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
    mutating func readAnswer(_ answer: [UInt8], at now: Int64) throws(RelayReader.Malformed) -> PresenceAnswer? {
        do throws(RelayReader.Malformed) {
            return try PresenceAnswer(answer, at: now)
        } catch {
            wanted = []
            throw error
        }
    }

    /// Finds the pieces of a hub that differ here.
    mutating func compareDigests(_ theirs: PresenceAnswer.Digests, with own: [UInt64]) {
        let numbers = zip(theirs.digests, own).enumerated().filter { $0.element.0 != $0.element.1 }.map(\.offset)
        if !numbers.isEmpty { wanted.append((theirs.hub, theirs.pieces, numbers)) }
    }

    /// - Returns: whether this was requested.
    mutating func receivePieces(_ covered: [Int], of hub: UInt64, in pieces: PresencePieces) -> Bool {
        guard var first = wanted.first, first.hub == hub, first.pieces == pieces else { return false }
        let (before, came) = (first.numbers.count, Set(covered))
        first.numbers.removeAll { came.contains($0) }
        wanted[0] = first
        if first.numbers.isEmpty { wanted.removeFirst() }
        return first.numbers.count < before
    }
}
