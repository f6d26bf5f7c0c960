/// A message's place in the log shared by several hubs: the same on all of them, so that a client may come back to any.
package struct HistoryPlace: Sendable, Equatable {
    /// The prefix of message IDs: a different one whenever the log starts over.
    package let history: UInt64
    /// Added to the log's own positions here, because a channel's positions only grow.
    let base: Int
    /// The position on this hub.
    let head: Int
}

/// The history that a channel's members ask for.
package struct HistoryWish: Sendable, Equatable {
    package let limit: Int
    /// Milliseconds.
    package let lifetime: Int64

    package init(limit: Int, lifetime: Int64) {
        self.limit = limit
        self.lifetime = lifetime
    }
}

/// The store as seen by the thread that reads the log. Messages to channels that any hub keeps go into the log first,
/// and every hub numbers them as they come out of it (`HistoryStore.isOrdered`).
extension HistoryStore {
    /// The numbers reserved for an entry: a place is the entry's number and the message's index in it, and entries have
    /// fewer messages.
    private static var entry: Int { 1 << 20 }

    /// Records that everything up to this place came out of the log. A different `history` means a log that started
    /// over.
    ///
    /// - Parameters:
    ///   - entry: the entry's number, from 1; 0 is before the first.
    ///   - index: the message's number in its entry, from 1.
    /// - Returns: nil if the place exceeds the range of positions, as in a log written by someone else; IDs are then
    ///   this hub's alone.
    package func advanceLog(history: UInt64, entry: Int, index: Int) -> HistoryPlace? {
        state.withLock { state in
            let base =
                if let log = state.log, log.history == history { log.base } else {
                    // Above everything numbered before.
                    (state.highest / Self.entry + 1) * Self.entry
                }
            let (start, overflow) = entry.multipliedReportingOverflow(by: Self.entry)
            let (head, carry) = start.addingReportingOverflow(index)
            guard !overflow, !carry, 0...HistoryID.greatest - base ~= head else {
                state.isInLog = false
                return nil
            }
            let place = HistoryPlace(history: history, base: base, head: base + head)
            state.log = place
            state.isInLog = true
            return place
        }
    }

    /// Records that the log is unreachable: from now on IDs are this hub's alone.
    ///
    /// - Parameter chance: a random prefix for those IDs.
    package func leaveLog(chance: UInt64) {
        state.withLock { state in
            guard state.isInLog else { return }
            state.isInLog = false
            for key in Array(state.channels.keys) { state.channels[key]?.leaveLog(history: chance) }
        }
    }

    /// Numbers a message that came out of the log.
    ///
    /// - Parameter place: nil for a message that bypassed the log because it was unreachable, and is numbered by this
    ///   hub alone.
    /// - Returns: false if the channel is not kept, or the message was numbered before.
    package func append(_ broadcast: OrderedBroadcast, to key: ChannelKey, at place: HistoryPlace?, _ now: HubTime)
        -> Bool
    {
        guard isUsed else { return false }
        return state.withLock {
            $0.append(
                broadcast.message, to: key, sender: broadcast.sender, databaseID: broadcast.databaseID, place: place,
                at: now)
        }
    }

    /// Handles a message of this hub that came out of the log but was delivered before its channel was kept: a client
    /// that comes back across this point is told that something is missing.
    package func recordLoss(_ key: ChannelKey, at now: HubTime) {
        guard isUsed else { return }
        state.withLock { $0.channels[key]?.recordLoss(at: now) }
    }

    /// Whether a message to the channel must go through the log first. True even just after the log was lost, as long
    /// as messages are on their way through it, because later ones would overtake them.
    func isOrdered(_ key: ChannelKey) -> Bool {
        isUsed && state.withLock { ($0.isInLog || $0.onTheirWay[key] != nil) && $0.channels[key] != nil }
    }

    /// Records that a message of this hub is on its way through the log.
    func countSent(_ key: ChannelKey) { state.withLock { $0.onTheirWay[key, default: 0] += 1 } }

    /// Records that such a message was numbered, or that its channel is no longer kept.
    package func countArrived(_ key: ChannelKey) {
        state.withLock { state in
            let rest = (state.onTheirWay[key] ?? 0) - 1
            state.onTheirWay[key] = rest > 0 ? rest : nil
        }
    }

    /// Returns what this hub's members want kept of the channel; nil if there are none.
    package func wish(for key: ChannelKey) -> HistoryWish? { state.withLock { $0.channels[key]?.wanted } }

    /// All channels of which this hub's members want something kept.
    package var wishes: [(key: ChannelKey, wish: HistoryWish)] {
        state.withLock { state in
            state.channels.compactMap { key, channel in channel.wanted.map { (key, $0) } }
        }
    }

    /// Handles another hub's change of whether its members want the channel kept.
    ///
    /// - Parameters:
    ///   - hub: the other hub's process.
    ///   - chance: names the history if it begins here and there is no log.
    package func keepChannel(_ key: ChannelKey, _ wish: HistoryWish?, for hub: UInt64, chance: UInt64, at now: HubTime)
    {
        state.withLock { state in
            guard let wish else {
                state.channels[key]?.detachPeer(hub: hub, at: now)
                return
            }
            let limits = state.limits
            guard limits.historyMessages > 0 else { return }
            let most = HistoryWish(
                limit: min(wish.limit, limits.historyMessages),
                lifetime: min(wish.lifetime, Int64(limits.historySeconds) * 1000))
            var channel =
                state.channels.removeValue(forKey: key) ?? KeptChannel(from: state.startPlace(chance), at: now)
            channel.attachPeer(hub: hub, most)
            state.channels[key] = channel
            channelCount.store(state.channels.count, ordering: .releasing)
        }
    }

    /// Handles the loss of a hub and its members.
    package func removePeer(hub: UInt64, at now: HubTime) {
        state.withLock { state in
            for key in Array(state.channels.keys) { state.channels[key]?.detachPeer(hub: hub, at: now) }
        }
    }

    /// Handles the loss of other hubs' messages. Which ones is unknown: clients that come back across this moment are
    /// told.
    package func recordLoss(at now: HubTime) {
        state.withLock { state in
            for key in Array(state.channels.keys) { state.channels[key]?.recordLoss(at: now) }
        }
    }
}
