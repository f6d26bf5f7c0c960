/// The position of a client that may come back, and how long it may.
struct SessionStand<Position: SessionPosition> {
    var position: Position
    var until: Int64
}

/// A session also stands in for claimed ones, as it may have been its own client that came: it has its own position,
/// and after its own window, those of the claimed ones until theirs end. So what is owed never reaches further back
/// than the window, however long lookalikes come and go.
extension SessionBucket.Ended {
    typealias Stand = SessionStand<Session.Position>

    /// If there are more, the last ones are merged.
    private static var mostOthers: Int { 8 }

    /// Its own position, and those it stands in for.
    var stands: [Stand] { [Stand(position: position, until: until)] + others }
    /// When the session is dropped.
    var end: Int64 { others.last?.until ?? until }

    /// Adds the positions of dropped sessions that it may be instead.
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

    /// Drops the positions whose window is over, its own or others'.
    mutating func moveOn(at time: Int64) {
        guard until <= time else { return }
        others.removeAll { $0.until <= time }
        guard let next = others.first else { return }
        position = others.dropFirst().reduce(next.position) { Self.earlier($0, $1.position) }
        until = next.until
        others.removeFirst()
    }

    /// Returns a position that is no later than either.
    private static func earlier(_ one: Session.Position, _ other: Session.Position) -> Session.Position {
        one.isEarlier(than: other) ? one : .earliest(of: [one, other]) ?? one
    }
}

/// Clients whose window was over before they came back, by keys without any other client. They still come, and what a
/// lookalike has left meanwhile is not theirs. A value, kept under the lock of the buckets' owner.
struct LateClients<Key: Hashable> {
    // By `goneAt` (`SessionBucket.overdue`), in two generations: the older is dropped when the younger is full.
    private var young: [Key: [Int]] = [:]
    private var old: [Key: [Int]] = [:]
    /// The maximum number of keys remembered; at least half as many are.
    private let most: Int

    init(most: Int) { self.most = most }

    mutating func addClients(_ clients: [Int], of key: Key) {
        guard !clients.isEmpty else { return }
        if young.count >= most / 2 {
            old = young
            young = [:]
        }
        young[key, default: []] += clients
    }

    mutating func takeClients(_ key: Key) -> [Int] {
        guard !young.isEmpty || !old.isEmpty else { return [] }
        return (young.removeValue(forKey: key) ?? []) + (old.removeValue(forKey: key) ?? [])
    }
}
