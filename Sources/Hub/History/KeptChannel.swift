import DequeModule
import Wire

/// The kept messages of one channel, for all loops.
///
/// **Order.** Messages are numbered as they come in, from whichever loop, and every loop passes them on in that order.
/// So a position says everything about what a member has: all messages up to it. If several hubs act as one, the log
/// that they share assigns the numbers (`HistoryPlace`), so that they are the same on all hubs, with gaps.
///
/// **Bounds.** A message is dropped when there are too many, when they are too large together or when it is too old,
/// but not before every loop with members here has passed it on: until then it also waits in that loop's inbox.
struct KeptChannel {
    /// See `HistoryID` and `base`.
    private(set) var history: UInt64
    /// The position that IDs of this history count from. Positions only grow, while IDs start over with each history.
    private(set) var base = 0
    /// The number of messages to keep, and for how many milliseconds: the highest that any member asked for.
    private var limit = 0
    private var lifetime: Int64 = 0
    private(set) var messages: Deque<KeptMessage> = []
    private(set) var bytes = 0
    /// The newest message's position.
    private(set) var head = 0
    /// Everything sent after this position is kept.
    private(set) var floor = 0
    /// Other hubs with members here, by their processes.
    private var hubs: Set<UInt64> = []
    /// The name of the next history, if it begins without the log.
    private var ownName: UInt64?
    /// A message was numbered here that other hubs know by another number.
    private var hasOwnOrder = false
    /// See `HistoryAnswer.since`.
    private(set) var since: Int64
    /// The loops with members here.
    private(set) var readers: [Int: HistoryReader] = [:]
    var sessions = HistorySessions()
    /// The time at which the last loop lost its last member; monotonic milliseconds.
    private var emptySince: Int64?
    /// IDs of messages from SQL that are numbered already, and when that was: every loop receives such a message, and
    /// the first numbers it.
    private var databaseIDs: [Name: Int64] = [:]

    /// Milliseconds that loops may lag behind each other in what they receive from the feed.
    private static let feedLag: Int64 = 60_000

    init(from place: HistoryPlace, at now: HubTime) {
        history = place.history
        base = place.base
        head = place.head
        floor = head
        since = now.unix
    }

    /// The oldest message's position, or one that later messages have not reached.
    var first: Int { messages.first?.position ?? head + 1 }

    /// Returns a position as clients know it. Positions before the history map to its beginning.
    func id(at position: Int) -> HistoryID { HistoryID(history: history, position: max(0, position - base)) }

    /// The limits asked for by the members, if this hub has any.
    var wanted: HistoryWish? { readers.isEmpty ? nil : HistoryWish(limit: limit, lifetime: lifetime) }

    mutating func attachLoop(_ loop: Int, limit: Int, lifetime: Int64) -> Int {
        self.limit = max(self.limit, limit)
        self.lifetime = max(self.lifetime, lifetime)
        emptySince = nil
        let reader = readers[loop] ?? HistoryReader(position: head)
        readers[loop] = reader
        return reader.position
    }

    mutating func detachLoop(_ loop: Int, at now: HubTime) {
        readers[loop] = nil
        if readers.isEmpty, hubs.isEmpty { emptySince = now.monotonic }
    }

    /// Attaches another hub that has members here, with the limits they ask for.
    mutating func attachPeer(hub: UInt64, _ wish: HistoryWish) {
        limit = max(limit, wish.limit)
        lifetime = max(lifetime, wish.lifetime)
        emptySince = nil
        hubs.insert(hub)
    }

    mutating func detachPeer(hub: UInt64, at now: HubTime) {
        guard hubs.remove(hub) != nil, readers.isEmpty, hubs.isEmpty else { return }
        emptySince = now.monotonic
    }

    /// - Parameter place: the message's place in the shared log; nil for the next position here.
    /// - Returns: false if the message was numbered before.
    mutating func append(
        _ broadcast: BroadcastMessage, sender: MessageSender?, databaseID: String?, place: HistoryPlace? = nil,
        at now: HubTime
    ) -> Bool {
        if let databaseID {
            guard databaseIDs[Name(databaseID)] == nil else { return false }
            databaseIDs[Name(databaseID)] = now.monotonic
        }
        if let place {
            followLog(place)
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

    /// Switches to the log's IDs. Other hubs do not know the messages numbered here meanwhile, so no client can come
    /// back across them.
    private mutating func followLog(_ place: HistoryPlace) {
        ownName = nil
        guard history != place.history || hasOwnOrder else { return }
        history = place.history
        base = place.base
        hasOwnOrder = false
        floor = head
    }

    /// Handles the loss of the log: until it is back, IDs are this hub's alone.
    mutating func leaveLog(history: UInt64) { ownName = history }

    /// Handles the loss of unknown messages: clients that come back across this moment are told.
    mutating func recordLoss(at now: HubTime) {
        floor = head
        since = now.unix
    }

    /// Returns the messages that a loop has not passed on yet, and counts them as passed on.
    mutating func news(for loop: Int, at now: HubTime) -> [KeptMessage] {
        guard let position = readers[loop]?.position, position < head else { return [] }
        readers[loop]?.advancePosition(to: head, at: now)
        return messagesAfter(position)
    }

    func messagesAfter(_ position: Int) -> [KeptMessage] {
        var (low, high) = (0, messages.count)
        while low < high {
            let middle = (low + high) / 2
            if messages[middle].position <= position { low = middle + 1 } else { high = middle }
        }
        return Array(messages.suffix(messages.count - low))
    }

    // MARK: Forgetting

    /// The oldest message's position, if every loop has passed it on.
    private var freeFirst: Int? {
        guard let oldest = messages.first?.position,
            readers.values.allSatisfy({ $0.position >= oldest })
        else { return nil }
        return oldest
    }

    /// Drops the oldest message. Returns false if there is none, or if a loop still needs it.
    mutating func dropFirst() -> Bool {
        guard freeFirst != nil, let message = messages.popFirst() else { return false }
        bytes -= message.bytes
        floor = max(floor, message.position)
        since = message.at.unix + 1
        return true
    }

    mutating func trimMessages(bytes most: Int, at now: HubTime) {
        while let oldest = messages.first,
            messages.count > limit || bytes > most || now.monotonic - oldest.at.monotonic > lifetime, dropFirst()
        {}
    }

    mutating func removeExpired(at now: HubTime) {
        sessions.removeExpired(at: now.monotonic)
        if !databaseIDs.isEmpty { databaseIDs = databaseIDs.filter { now.monotonic - $0.value < Self.feedLag } }
    }

    /// Whether no client can come back to this channel for anything.
    func isOver(at now: HubTime) -> Bool {
        guard let emptySince else { return false }
        return messages.isEmpty && sessions.isEmpty && now.monotonic - emptySince > lifetime
    }
}

/// A broadcast kept for clients that may come back for it.
struct KeptMessage: Sendable {
    let position: Int
    /// The position as clients know it.
    let id: HistoryID
    let broadcast: BroadcastMessage
    /// When the message was sent.
    let at: HubTime
    /// The sender, if it wants no echo.
    let sender: MessageSender?
    /// The ID of the row of `realtime.messages`, if the message is one.
    let databaseID: String?

    /// The approximate memory used.
    var bytes: Int { MemberWrite.broadcast(broadcast).bytes + Self.overhead }

    private static let overhead = 128
}

extension BroadcastMessage {
    /// A copy that does not keep the incoming frame alive, as a slice would.
    var copied: BroadcastMessage {
        guard case .broadcast(let copy) = MemberWrite.broadcast(self).copied else { return self }
        return copy
    }
}

/// How far one loop has passed a channel's history on to its members, over time.
struct HistoryReader {
    private struct Watermark {
        /// Monotonic milliseconds: the loop's clock when it passed on `position`.
        var at: Int64
        var position: Int
    }

    /// Everything up to this position was passed on to the loop's members.
    private(set) var position: Int
    private var watermarks: [Watermark] = []

    /// Each watermark covers this many milliseconds.
    private static let grain: Int64 = 1_000
    /// Enough to cover the time that a dead socket may go unnoticed: nothing older is asked for.
    private static let most = 150

    init(position: Int) { self.position = position }

    mutating func advancePosition(to position: Int, at now: HubTime) {
        guard position > self.position else { return }
        self.position = position
        // A watermark that is later than necessary acknowledges less than it could, never more.
        if let last = watermarks.last, now.monotonic - last.at < Self.grain {
            watermarks[watermarks.count - 1] = Watermark(at: now.monotonic, position: position)
        } else {
            watermarks.append(Watermark(at: now.monotonic, position: position))
            if watermarks.count > Self.most { watermarks.removeFirst(watermarks.count - Self.most) }
        }
    }

    /// Returns the position that was certainly passed on before the loop's clock showed `time`; zero if nothing is
    /// known. Messages passed on while the clock showed that very time may have come before or after.
    func position(before time: Int64) -> Int {
        watermarks.last { $0.at < time }?.position ?? 0
    }
}
