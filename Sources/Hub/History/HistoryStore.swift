import DequeModule
import Synchronization

/// Broadcasts kept for clients that drop off and come back. One store for all loops: a client may come back to any.
///
/// A channel is kept from the moment a join asks for history. A message to it is first stored here, which assigns its
/// position, and then passed on. Members with history are served from here: whenever a loop learns that there is
/// something new (by a message of its own, another loop's relay, the feed), it passes on everything it has not yet
/// passed on, in order. So on every loop such a member has received exactly the messages up to one position, and a join
/// resumes at the position where another one broke off: no gap, no overlap, and a single order.
///
/// **Never a silent gap.** If a returning client cannot be given everything any more, the reply to its join says so.
///
/// **Bounds**: a number of messages, bytes and seconds for each channel; `HubLimits.historyBytes` for all together. A
/// channel without members stays for as long as its messages are kept and lost members may come back to it.
///
/// Safe from any thread: everything is behind one lock, which is held for copying references to messages.
package final class HistoryStore: Sendable {
    private let window: Int64
    let state: Mutex<KeptChannels>
    /// The number of kept channels, readable without the lock.
    let channelCount = Atomic(0)

    /// - Parameter window: how long a lost member that names no ID may come back, in milliseconds.
    package init(limits: HubLimits = HubLimits(), window: Int64 = 120_000) {
        state = Mutex(KeptChannels(limits: limits))
        self.window = window
    }

    /// Applies new limits. Bytes beyond them are dropped with the next sweep; how many messages a channel keeps, and
    /// for how long, was fixed when it was joined.
    package func applyLimits(_ limits: HubLimits) {
        state.withLock { $0.limits = limits }
    }

    /// Whether anything is kept at all: without history, a hub pays one load per message.
    var isUsed: Bool { channelCount.load(ordering: .acquiring) > 0 }

    /// The totals of what is kept now.
    package var figures: (channels: Int, messages: Int, bytes: Int) {
        state.withLock { ($0.channels.count, $0.count, $0.bytes) }
    }

    /// The number of sessions that may be taken over, and of kept positions of sessions that gave way.
    package var awaited: (sessions: Int, places: Int) {
        state.withLock { state in
            let counts = state.channels.values.map(\.sessions.counts)
            return (counts.reduce(0) { $0 + $1.sessions }, counts.reduce(0) { $0 + $1.places })
        }
    }

    // MARK: Loops

    /// Attaches a loop to a channel, for each member with history that joins. With the first one, the loop starts to
    /// receive news.
    ///
    /// - Parameter chance: names the channel's history if it begins here.
    /// - Returns: the position up to which the loop need not pass messages on.
    func attachLoop(_ loop: Int, to key: ChannelKey, _ request: HistoryRequest, chance: UInt64, at now: HubTime)
        -> (position: Int, id: HistoryID)
    {
        state.withLock { state in
            let limits = state.limits
            let limit = min(max(request.limit ?? limits.historyMessages, 1), limits.historyMessages)
            let seconds = min(max(request.seconds ?? limits.historySeconds, 1), limits.historySeconds)
            var channel =
                state.channels.removeValue(forKey: key) ?? KeptChannel(from: state.startPlace(chance), at: now)
            let position = channel.attachLoop(loop, limit: limit, lifetime: Int64(seconds) * 1000)
            state.channels[key] = channel
            channelCount.store(state.channels.count, ordering: .releasing)
            return (position, channel.id(at: position))
        }
    }

    /// Detaches a loop that lost its last member with history.
    func detachLoop(_ loop: Int, from key: ChannelKey, at now: HubTime) {
        state.withLock { $0.channels[key]?.detachLoop(loop, at: now) }
    }

    // MARK: Messages

    /// Keeps a message, if its channel has a history.
    func append(
        _ broadcast: BroadcastMessage, to key: ChannelKey, sender: MessageSender? = nil, databaseID: String? = nil,
        at now: HubTime
    ) {
        state.withLock { _ = $0.append(broadcast, to: key, sender: sender, databaseID: databaseID, at: now) }
    }

    /// Returns the messages that a loop has to pass on, in order.
    func news(for loop: Int, in key: ChannelKey, at now: HubTime) -> [KeptMessage] {
        state.withLock { $0.channels[key]?.news(for: loop, at: now) ?? [] }
    }

    // MARK: Members

    /// Registers a member whose join has just arrived. The loop must be attached.
    ///
    /// - Returns: live members that may be dead sockets of the same client, and must be asked for a sign of life before
    ///   `answerArrival`.
    func addSession(_ session: HistorySession, in key: ChannelKey) -> [ClientTrace] {
        state.withLock { state in
            let doubts = window > 0 ? state.channels[key]?.doubts(of: session.trace, session.key) : nil
            state.channels[key]?.sessions.addSession(session)
            return doubts ?? []
        }
    }

    /// Answers a join. The loop must be attached and have passed on everything up to the position it states.
    func answerArrival(_ arrival: HistoryArrival, in key: ChannelKey) -> HistoryAnswer? {
        state.withLock { $0.channels[key]?.answerArrival(arrival) }
    }

    /// Moves a member's session to the key of its new token, under which its client would come back.
    func renewSession(_ session: HistorySession, _ member: HistoryKey, _ trace: ClientTrace, in key: ChannelKey)
        -> HistorySession
    {
        state.withLock { $0.channels[key]?.sessions.renewSession(session, member, trace) } ?? session
    }

    /// Ends a member's session. If the member was `lost`, its client may come back for what it did not acknowledge.
    ///
    /// - Parameter goneAt: the client's last ref, if it announced that it was going.
    func endSession(_ session: HistorySession, in key: ChannelKey, lost: Bool, goneAt: Int? = nil, at now: HubTime) {
        state.withLock { state in
            guard let reader = state.channels[key]?.readers[session.member.loop] else { return }
            let position = lost && window > 0 ? session.acknowledged(by: reader) : nil
            state.channels[key]?.sessions.endSession(
                session, lostAt: position, until: now.monotonic + window, step: max(1, window / SessionShares.steps),
                goneAt: goneAt)
        }
    }

    // MARK: Time

    /// Drops what is too old. Called by every loop once a second; one call a second does the work.
    func removeExpired(at now: HubTime) {
        guard isUsed else { return }
        state.withLock { state in
            guard now.monotonic >= state.nextSweep else { return }
            let limits = state.limits
            state.nextSweep = now.monotonic + 1000
            for key in Array(state.channels.keys) {
                let isOver = state.updateChannel(key) { channel in
                    channel.trimMessages(bytes: limits.historyBytesPerChannel, at: now)
                    channel.removeExpired(at: now)
                    return channel.isOver(at: now)
                }
                if isOver == true { state.channels[key] = nil }
            }
            state.makeRoom(limits.historyBytes)
            channelCount.store(state.channels.count, ordering: .releasing)
        }
    }
}

/// All channels of a history store, with totals.
struct KeptChannels {
    var limits: HubLimits
    var channels: [ChannelKey: KeptChannel] = [:]
    private(set) var bytes = 0
    private(set) var count = 0
    /// All messages, oldest first, including some that are gone.
    private var order: Deque<(channel: ChannelKey, position: Int)> = []
    /// The position in the log shared by several hubs, as far as it was read; nil without a log.
    var log: HistoryPlace?
    /// The log is reachable.
    var isInLog = false
    /// The number of this hub's messages to each channel that are not numbered yet.
    var onTheirWay: [ChannelKey: Int] = [:]
    /// The highest position of any channel.
    private(set) var highest = 0
    /// Monotonic milliseconds.
    var nextSweep = Int64.min

    init(limits: HubLimits) {
        self.limits = limits
    }

    /// Changes a channel in place and updates the totals.
    mutating func updateChannel<Result>(_ key: ChannelKey, _ body: (inout KeptChannel) -> Result) -> Result? {
        guard let index = channels.index(forKey: key) else { return nil }
        let (bytesBefore, countBefore) = (channels.values[index].bytes, channels.values[index].messages.count)
        let result = body(&channels.values[index])
        bytes += channels.values[index].bytes - bytesBefore
        count += channels.values[index].messages.count - countBefore
        return result
    }

    /// Returns the place at which a channel's history would begin now.
    func startPlace(_ chance: UInt64) -> HistoryPlace {
        // Above everything numbered before: `order` may still name messages of an earlier history of this channel.
        if isInLog, let log { log } else { HistoryPlace(history: chance, base: highest, head: highest) }
    }

    /// - Parameter place: the message's place in the shared log; nil for the next position of its channel.
    /// - Returns: whether the channel is kept and the message was not numbered before.
    mutating func append(
        _ broadcast: BroadcastMessage, to key: ChannelKey, sender: MessageSender?, databaseID: String?,
        place: HistoryPlace? = nil, at now: HubTime
    ) -> Bool {
        let limits = limits
        let added = updateChannel(key) { channel -> Int? in
            guard channel.append(broadcast, sender: sender, databaseID: databaseID, place: place, at: now) else {
                return nil
            }
            defer { channel.trimMessages(bytes: limits.historyBytesPerChannel, at: now) }
            return channel.head
        }
        guard let position = added ?? nil else { return false }
        highest = max(highest, position)
        order.append((key, position))
        makeRoom(limits.historyBytes)
        return true
    }

    /// Drops the oldest messages of all channels while their total is too large.
    mutating func makeRoom(_ most: Int) {
        while bytes > most, let oldest = order.first {
            let isDropped = updateChannel(oldest.channel) { channel in
                guard channel.first == oldest.position else { return true }
                return channel.dropFirst()
            }
            // A loop still has to pass the message on, so its memory would not be freed.
            if isDropped == false { break }
            order.removeFirst()
        }
        guard order.count > 2 * count + 1024 else { return }
        order.removeAll { entry in
            guard let channel = channels[entry.channel] else { return true }
            return entry.position < channel.first
        }
    }
}
