/// Where somebody stands who may come back, and until when.
struct SessionStand<Position: SessionPosition> {
    var position: Position
    var until: Int64
}

/// A session stands for those that were claimed, as it may have been its own client that came: where it stands itself, and when its own
/// window is over, where they stood, until theirs is. So what is owed never lies further back than the window, however long others that look
/// alike come and go.
extension SessionBucket.Ended {
    typealias Stand = SessionStand<Session.Position>

    /// Of more, the last are one.
    private static var mostOthers: Int { 8 }

    /// Itself, and those it stands in for.
    var stands: [Stand] { [Stand(position: position, until: until)] + others }
    /// When it is kept no longer.
    var end: Int64 { others.last?.until ?? until }

    /// It may be one of these instead, which are gone.
    mutating func standIn(for gone: [Stand]) {
        for stand in gone {
            position = Self.earlier(position, stand.position)
            guard stand.until > until else { continue }
            let place = others.firstIndex { $0.until > stand.until } ?? others.endIndex
            others.insert(Stand(position: stand.position.forAnybody, until: stand.until), at: place)
        }
        while others.count > Self.mostOthers {
            let last = others.removeLast()
            let before = others.removeLast()
            others.append(Stand(position: Self.earlier(before.position, last.position), until: last.until))
        }
    }

    /// Those whose window is over are left out, itself or others.
    mutating func moveOn(at time: Int64) {
        guard until <= time else { return }
        others.removeAll { $0.until <= time }
        guard let next = others.first else { return }
        position = others.dropFirst().reduce(next.position) { Self.earlier($0, $1.position) }
        until = next.until
        others.removeFirst()
    }

    /// A position that is no later than either.
    private static func earlier(_ one: Session.Position, _ other: Session.Position) -> Session.Position {
        one.isEarlier(than: other) ? one : .earliest(of: [one, other]) ?? one
    }
}

/// Clients for whom the window was over before they came back, of keys of which nobody else is left. They come all the same, and what another
/// one left meanwhile that looks alike is not theirs. A value, kept under the lock of whoever has the buckets.
struct LateClients<Key: Hashable> {
    // By `goneAt` (`SessionBucket.overdue`), in two ages, of which the older goes when the younger is full.
    private var young: [Key: [Int]] = [:]
    private var old: [Key: [Int]] = [:]
    /// So many keys are remembered at most; at least half as many.
    private let most: Int

    init(most: Int) { self.most = most }

    mutating func remember(_ clients: [Int], of key: Key) {
        guard !clients.isEmpty else { return }
        if young.count >= most / 2 {
            old = young
            young = [:]
        }
        young[key, default: []] += clients
    }

    mutating func take(_ key: Key) -> [Int] {
        guard !young.isEmpty || !old.isEmpty else { return [] }
        return (young.removeValue(forKey: key) ?? []) + (old.removeValue(forKey: key) ?? [])
    }
}
