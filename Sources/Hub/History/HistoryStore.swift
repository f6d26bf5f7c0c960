import DequeModule
import Synchronization

/// The broadcasts that are kept for those who drop off and come back. One for all loops: a client comes back on any.
///
/// A channel is kept from the moment that somebody joins it asking for history. What is sent to it is first noted here,
/// which gives it its place, and then passed on. Members with history are served from here: whatever tells a loop that
/// there is something new (a message of its own, another loop's relay, the feed), the loop passes on all that it has not
/// yet, in order. So on every loop such a member has received exactly the messages up to one position, and a join reads
/// on from the position where another one broke off: no gap, no overlap, and no order but one.
///
/// **Never a silent gap.** What a client that comes back cannot be given any more, the reply to its join says.
///
/// **Bounds**: for each channel a number of messages, bytes and seconds; for all together `HubLimits.historyBytes`. A
/// channel without members stays for the seconds that its messages are kept, and for those who were lost in it.
///
/// Safe from any thread: all of it is behind one lock, which is held for copying references to messages.
package final class HistoryStore: Sendable {
    private let window: Int64
    let state: Mutex<KeptChannels>
    /// Channels that are kept, to be read without the lock.
    let channelCount = Atomic(0)

    /// - Parameter window: how long a lost member that names no id may come back, in milliseconds.
    package init(limits: HubLimits = HubLimits(), window: Int64 = 120_000) {
        state = Mutex(KeptChannels(limits: limits))
        self.window = window
    }

    /// Other limits from here on. Bytes beyond them go with the next sweep; how many messages a channel keeps, and for how
    /// long, was settled when it was joined.
    package func adopt(_ limits: HubLimits) {
        state.withLock { $0.limits = limits }
    }

    /// Whether anything is kept at all: a hub in which nobody asked for history pays one load for a message.
    var isUsed: Bool { channelCount.load(ordering: .acquiring) > 0 }

    /// What is kept now.
    package var figures: (channels: Int, messages: Int, bytes: Int) {
        state.withLock { ($0.channels.count, $0.count, $0.bytes) }
    }

    /// How many sessions wait to be taken over, and how many places are kept of those that gave way.
    package var awaited: (sessions: Int, places: Int) {
        state.withLock { state in
            let counts = state.channels.values.map(\.sessions.counts)
            return (counts.reduce(0) { $0 + $1.sessions }, counts.reduce(0) { $0 + $1.places })
        }
    }

    // MARK: Loops

    /// A member with history is joining. With the loop's first one it is passed on from here what is new.
    ///
    /// - Parameter chance: names the channel's history if it begins here.
    /// - Returns: up to where the loop need not pass it on.
    func attach(_ loop: Int, to key: ChannelKey, _ request: HistoryRequest, chance: UInt64, at now: HubTime)
        -> (position: Int, id: HistoryID)
    {
        state.withLock { state in
            let limits = state.limits
            let limit = min(max(request.limit ?? limits.historyMessages, 1), limits.historyMessages)
            let seconds = min(max(request.seconds ?? limits.historySeconds, 1), limits.historySeconds)
            var channel = state.channels.removeValue(forKey: key) ?? KeptChannel(from: state.beginning(chance), at: now)
            let position = channel.attach(loop, limit: limit, lifetime: Int64(seconds) * 1000)
            state.channels[key] = channel
            channelCount.store(state.channels.count, ordering: .releasing)
            return (position, channel.id(at: position))
        }
    }

    /// A loop's last member with history is gone.
    func detach(_ loop: Int, from key: ChannelKey, at now: HubTime) {
        state.withLock { $0.channels[key]?.detach(loop, at: now) }
    }

    // MARK: Messages

    /// Notes a message, if its channel is kept.
    func append(
        _ broadcast: BroadcastMessage, to key: ChannelKey, sender: MessageSender? = nil, databaseID: String? = nil,
        at now: HubTime
    ) {
        state.withLock { _ = $0.append(broadcast, to: key, sender: sender, databaseID: databaseID, at: now) }
    }

    /// What a loop has to pass on, in order.
    func news(for loop: Int, in key: ChannelKey, at now: HubTime) -> [KeptMessage] {
        state.withLock { $0.channels[key]?.news(for: loop, at: now) ?? [] }
    }

    // MARK: Members

    /// Notes a member whose join came this moment. The loop is attached.
    ///
    /// - Returns: live members that may be dead ones of the same client: whether they live is to be asked before `answer`.
    func enter(_ session: HistorySession, in key: ChannelKey) -> [ClientTrace] {
        state.withLock { state in
            let doubts = window > 0 ? state.channels[key]?.doubts(of: session.trace, session.key) : nil
            state.channels[key]?.sessions.enter(session)
            return doubts ?? []
        }
    }

    /// Answers a join. The loop is attached, and has passed on all up to the position that it says.
    func answer(_ arrival: HistoryArrival, in key: ChannelKey) -> HistoryAnswer? {
        state.withLock { $0.channels[key]?.answer(arrival) }
    }

    /// A member's token is one of somebody else from here on, so that whoever comes back for it brings another key.
    func renew(_ session: HistorySession, _ member: HistoryKey, _ trace: ClientTrace, in key: ChannelKey)
        -> HistorySession
    {
        state.withLock { $0.channels[key]?.sessions.renew(session, member, trace) } ?? session
    }

    /// A member is gone. If it was `lost`, it may come back for what it did not acknowledge.
    ///
    /// - Parameter goneAt: where its client said that it goes.
    func end(_ session: HistorySession, in key: ChannelKey, lost: Bool, goneAt: Int? = nil, at now: HubTime) {
        state.withLock { state in
            guard let reader = state.channels[key]?.readers[session.member.loop] else { return }
            let position = lost && window > 0 ? session.acknowledged(by: reader) : nil
            state.channels[key]?.sessions.end(
                session, lostAt: position, until: now.monotonic + window, step: max(1, window / SessionShares.steps),
                goneAt: goneAt)
        }
    }

    // MARK: Time

    /// Forgets what is too old. Called by every loop once a second; one call a second does the work.
    func sweep(at now: HubTime) {
        guard isUsed else { return }
        state.withLock { state in
            guard now.monotonic >= state.nextSweep else { return }
            let limits = state.limits
            state.nextSweep = now.monotonic + 1000
            for key in Array(state.channels.keys) {
                let isOver = state.update(key) { channel in
                    channel.trim(bytes: limits.historyBytesPerChannel, at: now)
                    channel.forget(at: now)
                    return channel.isOver(at: now)
                }
                if isOver == true { state.channels[key] = nil }
            }
            state.makeRoom(limits.historyBytes)
            channelCount.store(state.channels.count, ordering: .releasing)
        }
    }
}

/// All channels of a history store, and the sums over them.
struct KeptChannels {
    var limits: HubLimits
    var channels: [ChannelKey: KeptChannel] = [:]
    private(set) var bytes = 0
    private(set) var count = 0
    /// All messages, oldest first, and some that are gone.
    private var order: Deque<(channel: ChannelKey, position: Int)> = []
    /// Where the log is that several hubs share, as far as it was read; nil where there is none.
    var log: HistoryPlace?
    /// It can be reached.
    var isInLog = false
    /// How many messages of this hub's are to be numbered and are not yet.
    var onTheirWay: [ChannelKey: Int] = [:]
    /// The highest position of any channel.
    private(set) var highest = 0
    /// Milliseconds, monotonic.
    var nextSweep = Int64.min

    init(limits: HubLimits) {
        self.limits = limits
    }

    /// Changes a channel in place and keeps the sums.
    mutating func update<Result>(_ key: ChannelKey, _ body: (inout KeptChannel) -> Result) -> Result? {
        guard let index = channels.index(forKey: key) else { return nil }
        let (bytesBefore, countBefore) = (channels.values[index].bytes, channels.values[index].messages.count)
        let result = body(&channels.values[index])
        bytes += channels.values[index].bytes - bytesBefore
        count += channels.values[index].messages.count - countBefore
        return result
    }

    /// Where a channel's history begins now.
    func beginning(_ chance: UInt64) -> HistoryPlace {
        // Above all that was numbered before: `order` may still name messages of a history of this channel that is over.
        if isInLog, let log { log } else { HistoryPlace(history: chance, base: highest, head: highest) }
    }

    /// - Parameter place: its number in the log that hubs share; nil: the next one of its channel.
    /// - Returns: whether its channel is kept, and it was not numbered before.
    mutating func append(
        _ broadcast: BroadcastMessage, to key: ChannelKey, sender: MessageSender?, databaseID: String?,
        place: HistoryPlace? = nil, at now: HubTime
    ) -> Bool {
        let limits = limits
        let added = update(key) { channel -> Int? in
            guard channel.append(broadcast, sender: sender, databaseID: databaseID, place: place, at: now) else {
                return nil
            }
            defer { channel.trim(bytes: limits.historyBytesPerChannel, at: now) }
            return channel.head
        }
        guard let position = added ?? nil else { return false }
        highest = max(highest, position)
        order.append((key, position))
        makeRoom(limits.historyBytes)
        return true
    }

    /// Drops the oldest messages of all channels while they are too large together.
    mutating func makeRoom(_ most: Int) {
        while bytes > most, let oldest = order.first {
            let isDropped = update(oldest.channel) { channel in
                guard channel.first == oldest.position else { return true }
                return channel.dropFirst()
            }
            // A loop still has to pass it on, so its memory would not be freed.
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
