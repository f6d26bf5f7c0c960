import Streams

/// Makes room for new content. Ended streams are removed for it; open ones stay.
extension StreamWorker {
    /// Users together may have the room except for this part, which is reserved for the backend.
    private static let backendsPart = 4
    /// The fraction that is freed beyond what is needed, so that evictions are rare.
    private static let slack = 16

    /// Makes room within the owner's limits first, from the owner's streams, and then within the limits of all.
    func makeRoom(for more: StreamShares.Room, of owner: StreamOwner?) throws(StreamRefusal) {
        let all = StreamShares.Room(count: setup.limits.count, bytes: setup.limits.totalBytes)
        guard let owner else { return try makeRoom(for: more, within: all) }
        let most = StreamShares.Room(count: setup.limits.countPerUser, bytes: setup.limits.bytesPerUser)
        try makeRoom(for: more, of: owner, within: most)
        try makeRoom(for: more, ofUsersWithin: all - all.dividedBy(Self.backendsPart))
        try makeRoom(for: more, within: all)
    }

    private func makeRoom(
        for more: StreamShares.Room, of owner: StreamOwner, within most: StreamShares.Room
    ) throws(StreamRefusal) {
        let has = shares.room(of: owner)
        guard !has.has(roomFor: more, within: most) else { return }
        evictStreams(shares.streams(of: owner), for: more, has, within: most)
        guard !shares.room(of: owner).has(roomFor: more, within: most) else { return }
        let isFull = more.count > 0 && shares.room(of: owner).count >= most.count
        throw .overShare(limit: isFull ? "streams.count_per_user" : "streams.bytes_per_user")
    }

    private func makeRoom(for more: StreamShares.Room, ofUsersWithin most: StreamShares.Room) throws(StreamRefusal) {
        guard !shares.users.has(roomFor: more, within: most) else { return }
        evictStreams(streams.values.filter { $0.log.configuration.owner != nil }, for: more, shares.users, within: most)
        try checkRoom(shares.users, for: more, within: most)
    }

    private func makeRoom(for more: StreamShares.Room, within most: StreamShares.Room) throws(StreamRefusal) {
        guard !shares.all.has(roomFor: more, within: most) else { return }
        evictStreams(streams.values, for: more, shares.all, within: most)
        try checkRoom(shares.all, for: more, within: most)
    }

    private func checkRoom(
        _ has: StreamShares.Room, for more: StreamShares.Room, within most: StreamShares.Room
    ) throws(StreamRefusal) {
        guard !has.has(roomFor: more, within: most) else { return }
        let isFull = more.count > 0 && has.count >= most.count
        throw .tooMuch(limit: isFull ? "streams.count" : "streams.total_bytes")
    }

    /// - Parameter has: the room taken by the owners of these streams.
    private func evictStreams(
        _ streams: some Sequence<KeptStream>, for more: StreamShares.Room, _ has: StreamShares.Room,
        within most: StreamShares.Room
    ) {
        let isShort = has.bytes + more.bytes > most.bytes
        let all = StreamShares.Room(count: setup.limits.count, bytes: setup.limits.totalBytes)
        let chosen = shares.chooseStreams(
            streams.filter(\.mayGiveWay), kept: all.dividedBy(Self.backendsPart), by: isShort ? \.bytes : \.count
        ) { freed in
            (has - freed).has(roomFor: more, within: most - most.dividedBy(Self.slack))
        }
        guard !chosen.isEmpty else { return }
        if sharing == nil { for stream in chosen { removeStream(stream) } } else if !removeShared(chosen) { return }
        figures.evicted += chosen.count
    }
}
