import DequeModule
import Wire

/// The kept messages of one channel, for all loops.
///
/// **Order.** Messages are numbered as they come in, whichever loop they come from, and every loop passes them on in that
/// order. So a position says all about what a member has: everything up to it. Where several hubs act as one, the log that they
/// share gives the numbers (`HistoryPlace`), so that all of them have the same ones, with gaps.
///
/// **Bounds.** A message goes when there are too many, when they are too large together or when it is too old, but not
/// before every loop that has members here has passed it on: until then it waits in that loop's inbox, too.
struct KeptChannel {
    /// See `HistoryID`, and `base`.
    private(set) var history: UInt64
    /// The position that ids of this history count from. Positions only grow, while another history begins anew.
    private(set) var base = 0
    /// How many messages, and for how many milliseconds: the most that any member asked for.
    private var limit = 0
    private var lifetime: Int64 = 0
    private(set) var messages: Deque<KeptMessage> = []
    private(set) var bytes = 0
    /// The newest message's position.
    private(set) var head = 0
    /// All that was sent after it is kept.
    private(set) var floor = 0
    /// Other hubs that have members here, by their processes.
    private var hubs: Set<UInt64> = []
    /// What the next history is called, if it begins without the log.
    private var ownName: UInt64?
    /// Something was numbered here that other hubs know by another number.
    private var hasOwnOrder = false
    /// See `HistoryAnswer.since`.
    private(set) var since: Int64
    /// The loops that have members here.
    private(set) var readers: [Int: HistoryReader] = [:]
    var sessions = HistorySessions()
    /// When the last loop lost its last member; milliseconds, monotonic.
    private var emptySince: Int64?
    /// Every loop hears what SQL sends, and the first numbers it: these were, and when.
    private var databaseIDs: [Name: Int64] = [:]

    /// Milliseconds that loops may lie behind each other with what the feed brings them.
    private static let feedLag: Int64 = 60_000

    init(from place: HistoryPlace, at now: HubTime) {
        history = place.history
        base = place.base
        head = place.head
        floor = head
        since = now.unix
    }

    /// The oldest message's position, or one that the next ones have not reached.
    var first: Int { messages.first?.position ?? head + 1 }

    /// What a position is to clients. Before the history, it is its beginning.
    func id(at position: Int) -> HistoryID { HistoryID(history: history, position: max(0, position - base)) }

    /// The limits that its members asked for, where this hub has any.
    var wanted: HistoryWish? { readers.isEmpty ? nil : HistoryWish(limit: limit, lifetime: lifetime) }

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
        if readers.isEmpty, hubs.isEmpty { emptySince = now.monotonic }
    }

    /// Another hub has members here, and keeps as much.
    mutating func attach(hub: UInt64, _ wish: HistoryWish) {
        limit = max(limit, wish.limit)
        lifetime = max(lifetime, wish.lifetime)
        emptySince = nil
        hubs.insert(hub)
    }

    mutating func detach(hub: UInt64, at now: HubTime) {
        guard hubs.remove(hub) != nil, readers.isEmpty, hubs.isEmpty else { return }
        emptySince = now.monotonic
    }

    /// - Parameter place: its number in the log that hubs share; nil: the next one here.
    /// - Returns: false if it was numbered before.
    mutating func append(
        _ broadcast: BroadcastMessage, sender: MessageSender?, databaseID: String?, place: HistoryPlace? = nil,
        at now: HubTime
    ) -> Bool {
        if let databaseID {
            guard databaseIDs[Name(databaseID)] == nil else { return false }
            databaseIDs[Name(databaseID)] = now.monotonic
        }
        if let place {
            follow(place)
            guard place.head > head else { return false }
            head = place.head
        } else {
            if let ownName {
                history = ownName
                base = head
                self.ownName = nil
            }
            head += 1
            hasOwnOrder = true
        }
        let message = KeptMessage(
            position: head, id: id(at: head), broadcast: broadcast.copied, at: now, sender: sender,
            databaseID: databaseID)
        messages.append(message)
        bytes += message.bytes
        return true
    }

    /// Ids are those of the log from here on. Of what was numbered here meanwhile others know nothing, so that nobody comes back
    /// over it.
    private mutating func follow(_ place: HistoryPlace) {
        ownName = nil
        guard history != place.history || hasOwnOrder else { return }
        history = place.history
        base = place.base
        hasOwnOrder = false
        floor = head
    }

    /// The log cannot be reached: what is numbered until it can has ids that are this hub's alone.
    mutating func leaveLog(history: UInt64) { ownName = history }

    /// Nobody knows what was sent: who comes back over this moment is told so.
    mutating func loses(at now: HubTime) {
        floor = head
        since = now.unix
    }

    /// What a loop has not passed on yet; it counts as passed on from here.
    mutating func news(for loop: Int, at now: HubTime) -> [KeptMessage] {
        guard let position = readers[loop]?.position, position < head else { return [] }
        readers[loop]?.advance(to: head, at: now)
        return after(position)
    }

    func after(_ position: Int) -> [KeptMessage] {
        var (low, high) = (0, messages.count)
        while low < high {
            let middle = (low + high) / 2
            if messages[middle].position <= position { low = middle + 1 } else { high = middle }
        }
        return Array(messages.suffix(messages.count - low))
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
        floor = max(floor, message.position)
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
    /// The position as clients know it.
    let id: HistoryID
    let broadcast: BroadcastMessage
    /// When it was sent: milliseconds, monotonic and since 1970.
    let at: HubTime
    /// Who is not told; nil where that is nobody.
    let sender: MessageSender?
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
