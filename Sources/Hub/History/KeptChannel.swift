import DequeModule

/// The kept messages of one channel, for all loops.
///
/// **Order.** Messages are numbered as they come in, whichever loop they come from, and every loop passes them on in that
/// order. So a position says all about what a member has: everything up to it.
///
/// **Bounds.** A message goes when there are too many, when they are too large together or when it is too old, but not
/// before every loop that has members here has passed it on: until then it waits in that loop's inbox, too.
struct KeptChannel {
    /// See `HistoryID`.
    let history: UInt64
    /// How many messages, and for how many milliseconds: the most that any member asked for.
    private var limit = 0
    private var lifetime: Int64 = 0
    private(set) var messages: Deque<KeptMessage> = []
    private(set) var bytes = 0
    /// The newest message's position.
    private(set) var head = 0
    /// See `HistoryAnswer.since`.
    private(set) var since: Int64
    /// The loops that have members here.
    private(set) var readers: [Int: HistoryReader] = [:]
    var sessions = HistorySessions()
    /// When the last loop lost its last member; milliseconds, monotonic.
    private var emptySince: Int64?
    /// Every loop hears what SQL sends, and the first numbers it: these were, and when.
    private var databaseIDs: [String: Int64] = [:]

    /// Milliseconds that loops may lie behind each other with what the feed brings them.
    private static let feedLag: Int64 = 60_000

    init(history: UInt64, at now: HubTime) {
        self.history = history
        since = now.unix
    }

    /// The oldest message's position, or that of the next one.
    var first: Int { head - messages.count + 1 }

    mutating func attach(_ loop: Int, limit: Int, lifetime: Int64) -> Int {
        self.limit = max(self.limit, limit)
        self.lifetime = max(self.lifetime, lifetime)
        emptySince = nil
        let reader = readers[loop] ?? HistoryReader(position: head)
        readers[loop] = reader
        return reader.position
    }

    mutating func detach(_ loop: Int, at now: HubTime) {
        readers[loop] = nil
        if readers.isEmpty { emptySince = now.monotonic }
    }

    /// - Returns: false if it was numbered before.
    mutating func append(_ broadcast: BroadcastMessage, sender: MemberID?, databaseID: String?, at now: HubTime) -> Bool
    {
        if let databaseID {
            guard databaseIDs[databaseID] == nil else { return false }
            databaseIDs[databaseID] = now.monotonic
        }
        head += 1
        let message = KeptMessage(
            position: head, broadcast: broadcast.copied, at: now, sender: sender, databaseID: databaseID)
        messages.append(message)
        bytes += message.bytes
        return true
    }

    /// What a loop has not passed on yet; it counts as passed on from here.
    mutating func news(for loop: Int, at now: HubTime) -> [KeptMessage] {
        guard let position = readers[loop]?.position, position < head else { return [] }
        readers[loop]?.advance(to: head, at: now)
        return after(position)
    }

    func after(_ position: Int) -> [KeptMessage] {
        Array(messages.suffix(max(0, head - max(position, first - 1))))
    }

    // MARK: Forgetting

    /// The oldest message's position, where every loop has passed it on.
    private var freeFirst: Int? {
        guard let oldest = messages.first?.position,
            readers.values.allSatisfy({ $0.position >= oldest })
        else { return nil }
        return oldest
    }

    /// Drops the oldest message. False if there is none, or if a loop still needs it.
    mutating func dropFirst() -> Bool {
        guard freeFirst != nil, let message = messages.popFirst() else { return false }
        bytes -= message.bytes
        since = message.at.unix + 1
        return true
    }

    mutating func trim(bytes most: Int, at now: HubTime) {
        while let oldest = messages.first,
            messages.count > limit || bytes > most || now.monotonic - oldest.at.monotonic > lifetime, dropFirst()
        {}
    }

    mutating func forget(at now: HubTime) {
        sessions.forget(at: now.monotonic)
        if !databaseIDs.isEmpty { databaseIDs = databaseIDs.filter { now.monotonic - $0.value < Self.feedLag } }
    }

    /// Nobody can come back for anything.
    func isOver(at now: HubTime) -> Bool {
        guard let emptySince else { return false }
        return messages.isEmpty && sessions.isEmpty && now.monotonic - emptySince > lifetime
    }
}

/// A broadcast that is kept for those who may come back for it.
struct KeptMessage: Sendable {
    let position: Int
    let broadcast: BroadcastMessage
    /// When it was sent: milliseconds, monotonic and since 1970.
    let at: HubTime
    /// Who sent it and did not want it back; nil where nobody is to be spared.
    let sender: MemberID?
    /// The id of a row of `realtime.messages`, if it is one.
    let databaseID: String?

    /// What it takes in memory, about.
    var bytes: Int { MemberWrite.broadcast(broadcast).bytes + Self.overhead }

    private static let overhead = 128
}

extension BroadcastMessage {
    /// The same without the frame it came in, which a slice would keep alive.
    var copied: BroadcastMessage {
        guard case .broadcast(let copy) = MemberWrite.broadcast(self).copied else { return self }
        return copy
    }
}

/// How far one loop has passed a channel's history on to its members, and when.
struct HistoryReader {
    private struct Watermark {
        /// Milliseconds, monotonic: the loop's clock as it was when the loop passed on `position`.
        var at: Int64
        var position: Int
    }

    /// All up to it was passed on to the members that the loop has.
    private(set) var position: Int
    private var watermarks: [Watermark] = []

    /// One watermark stands for this many milliseconds.
    private static let grain: Int64 = 1_000
    /// As many as cover the time that a dead socket may go unnoticed: nothing older is asked for.
    private static let most = 150

    init(position: Int) { self.position = position }

    mutating func advance(to position: Int, at now: HubTime) {
        guard position > self.position else { return }
        self.position = position
        // A watermark that is made later than needed acknowledges less than it could, never more.
        if let last = watermarks.last, now.monotonic - last.at < Self.grain {
            watermarks[watermarks.count - 1] = Watermark(at: now.monotonic, position: position)
        } else {
            watermarks.append(Watermark(at: now.monotonic, position: position))
            if watermarks.count > Self.most { watermarks.removeFirst(watermarks.count - Self.most) }
        }
    }

    /// What was certainly passed on before the loop's clock showed `time`; zero where nothing is known of then. What was
    /// passed on while it showed that very time may have come before or after.
    func position(before time: Int64) -> Int {
        watermarks.last { $0.at < time }?.position ?? 0
    }
}
