import Streams

/// Tracks how much room each owner's streams take, and which streams give way. Confined to the worker's thread.
///
/// A stream without an owner belongs to the backend. The backend has no limit of its own, and a quarter of the room is
/// reserved for it, so that users together cannot take all of it.
struct StreamShares {
    struct Room {
        var count = 0
        var bytes = 0
    }

    private struct Owned {
        var room = Room()
        var streams: [ObjectIdentifier: KeptStream] = [:]
    }

    private(set) var all = Room()
    /// All streams that have owners.
    private(set) var users = Room()
    private var owned: [StreamOwner: Owned] = [:]

    func room(of owner: StreamOwner) -> Room { owned[owner]?.room ?? Room() }

    func streams(of owner: StreamOwner) -> [KeptStream] { owned[owner].map { Array($0.streams.values) } ?? [] }

    mutating func addStream(_ stream: KeptStream) {
        adjustRoom(stream.log.configuration.owner, count: 1, bytes: stream.log.kept)
        if let owner = stream.log.configuration.owner { owned[owner]?.streams[ObjectIdentifier(stream)] = stream }
    }

    mutating func removeStream(_ stream: KeptStream) {
        if let owner = stream.log.configuration.owner { owned[owner]?.streams[ObjectIdentifier(stream)] = nil }
        adjustRoom(stream.log.configuration.owner, count: -1, bytes: -stream.log.kept)
    }

    mutating func growStream(_ stream: KeptStream, by bytes: Int) {
        adjustRoom(stream.log.configuration.owner, count: 0, bytes: bytes)
    }

    private mutating func adjustRoom(_ owner: StreamOwner?, count: Int, bytes: Int) {
        all += (count, bytes)
        guard let owner else { return }
        users += (count, bytes)
        owned[owner, default: Owned()].room += (count, bytes)
        if owned[owner]?.room.count == 0 { owned[owner] = nil }
    }

    // MARK: Eviction

    /// Chooses streams to remove until there is enough room: repeatedly the one that ended first among those of the largest owner.
    ///
    /// - Parameters:
    ///   - candidates: streams that may be removed.
    ///   - kept: the room reserved for the backend, which does not count.
    ///   - measure: the quantity that is exceeded.
    ///   - isEnough: receives the room freed so far.
    func chooseStreams(
        _ candidates: some Sequence<KeptStream>, kept: Room, by measure: KeyPath<Room, Int>,
        until isEnough: (Room) -> Bool
    ) -> [KeptStream] {
        // The last of each group ended first.
        var groups = Dictionary(grouping: candidates) { $0.log.configuration.owner }
            .map { owner, streams in
                (
                    has: owner.map { room(of: $0)[keyPath: measure] }
                        ?? max(0, all[keyPath: measure] - users[keyPath: measure] - kept[keyPath: measure]),
                    streams: streams.sorted { $0.endedAt > $1.endedAt }
                )
            }
        var (chosen, freed): ([KeptStream], Room) = ([], Room())
        while !isEnough(freed) {
            let most = groups.indices.max { one, other in
                let (one, other) = (groups[one], groups[other])
                return one.has == other.has
                    ? (one.streams.last?.endedAt ?? 0) > (other.streams.last?.endedAt ?? 0) : one.has < other.has
            }
            guard let most, let stream = groups[most].streams.popLast() else { break }
            chosen.append(stream)
            let room = Room(count: 1, bytes: stream.log.kept)
            freed += (1, room.bytes)
            groups[most].has = max(0, groups[most].has - room[keyPath: measure])
            if groups[most].streams.isEmpty { groups.remove(at: most) }
        }
        return chosen
    }
}

extension StreamShares.Room {
    fileprivate static func += (room: inout Self, change: (count: Int, bytes: Int)) {
        room.count += change.count
        room.bytes += change.bytes
    }

    /// A fraction of the room, rounded down.
    func dividedBy(_ divisor: Int) -> Self { Self(count: count / divisor, bytes: bytes / divisor) }

    /// Whether the additional room fits within the limit.
    func has(roomFor more: Self, within most: Self) -> Bool {
        bytes + more.bytes <= most.bytes && (more.count == 0 || count + more.count <= most.count)
    }

    static func - (room: Self, other: Self) -> Self {
        Self(count: room.count - other.count, bytes: room.bytes - other.bytes)
    }
}

extension KeptStream {
    fileprivate var endedAt: Int64 { log.ending?.at ?? 0 }

    /// The stream has ended, and nothing waits for it.
    var mayGiveWay: Bool { log.ending != nil && !isTouched && waiting == nil }
}
