/// Where a message lies in the log that several hubs share: the same on all of them, so that a client may come back to any.
package struct HistoryPlace: Sendable, Equatable {
    /// What the ids of messages begin with: another one where the log begins anew.
    package let history: UInt64
    /// What the log's own positions are added to here: those of a channel only grow.
    let base: Int
    /// The position here.
    let head: Int
}

/// How much of a channel its members want to be kept.
package struct HistoryWish: Sendable, Equatable {
    package let limit: Int
    /// Milliseconds.
    package let lifetime: Int64

    package init(limit: Int, lifetime: Int64) {
        self.limit = limit
        self.lifetime = lifetime
    }
}

/// The store as the thread sees it that reads the log. Messages that hubs send to channels which any of them keeps go into the log
/// first, and every hub numbers them as they come out of it (`HistoryStore.orders`).
extension HistoryStore {
    /// A place in the log is an entry's number and the message's place in it; an entry has fewer messages than this.
    private static var entry: Int { 1 << 20 }

    /// All up to here came out of the log. Another `history` is another log, which begins anew.
    ///
    /// - Parameters:
    ///   - entry: its number, from 1; 0 lies before the first.
    ///   - index: the message's number in its entry, from 1.
    /// - Returns: nil where it is further than positions reach, as a log says that somebody else has written: ids are this hub's alone
    ///   then.
    package func reaches(history: UInt64, entry: Int, index: Int) -> HistoryPlace? {
        state.withLock { state in
            let base =
                if let log = state.log, log.history == history { log.base } else {
                    // Above all that was numbered before.
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

    /// The log cannot be reached: ids are this hub's alone from here on.
    ///
    /// - Parameter chance: what they begin with.
    package func leavesLog(chance: UInt64) {
        state.withLock { state in
            guard state.isInLog else { return }
            state.isInLog = false
            for key in Array(state.channels.keys) { state.channels[key]?.leaveLog(history: chance) }
        }
    }

    /// Numbers a message that came out of the log.
    ///
    /// - Parameter place: nil for one that did not, as the log is away: it is this hub's alone.
    /// - Returns: false if its channel is not kept, or it was numbered before.
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

    /// A message of this hub's came out of the log that was told of before anybody kept its channel: who comes back over it is told
    /// that something is missing.
    package func lacks(_ key: ChannelKey, at now: HubTime) {
        guard isUsed else { return }
        state.withLock { $0.channels[key]?.loses(at: now) }
    }

    /// Whether a message to the channel has to go through the log first. While some are on their way, also where the log has just
    /// been lost: those behind them would overtake them.
    func orders(_ key: ChannelKey) -> Bool {
        isUsed && state.withLock { ($0.isInLog || $0.onTheirWay[key] != nil) && $0.channels[key] != nil }
    }

    /// A message of this hub's goes through the log first.
    func sends(_ key: ChannelKey) { state.withLock { $0.onTheirWay[key, default: 0] += 1 } }

    /// One that went is numbered, or nobody keeps its channel any more.
    package func arrives(_ key: ChannelKey) {
        state.withLock { state in
            let rest = (state.onTheirWay[key] ?? 0) - 1
            state.onTheirWay[key] = rest > 0 ? rest : nil
        }
    }

    /// What members of this hub want to be kept of the channel; nil where there are none.
    package func wish(for key: ChannelKey) -> HistoryWish? { state.withLock { $0.channels[key]?.wanted } }

    /// All channels of which members of this hub want something to be kept.
    package var wishes: [(key: ChannelKey, wish: HistoryWish)] {
        state.withLock { state in
            state.channels.compactMap { key, channel in channel.wanted.map { (key, $0) } }
        }
    }

    /// Another hub has members who want something to be kept, or none any more.
    ///
    /// - Parameters:
    ///   - hub: its process.
    ///   - chance: names the history if it begins here and there is no log.
    package func keep(_ key: ChannelKey, _ wish: HistoryWish?, for hub: UInt64, chance: UInt64, at now: HubTime) {
        state.withLock { state in
            guard let wish else {
                state.channels[key]?.detach(hub: hub, at: now)
                return
            }
            let limits = state.limits
            guard limits.historyMessages > 0 else { return }
            let most = HistoryWish(
                limit: min(wish.limit, limits.historyMessages),
                lifetime: min(wish.lifetime, Int64(limits.historySeconds) * 1000))
            var channel =
                state.channels.removeValue(forKey: key) ?? KeptChannel(from: state.beginning(chance), at: now)
            channel.attach(hub: hub, most)
            state.channels[key] = channel
            channelCount.store(state.channels.count, ordering: .releasing)
        }
    }

    /// A hub is gone, and its members with it.
    package func forget(hub: UInt64, at now: HubTime) {
        state.withLock { state in
            for key in Array(state.channels.keys) { state.channels[key]?.detach(hub: hub, at: now) }
        }
    }

    /// Messages of other hubs are missing, and nobody knows which: who comes back over this moment is told so.
    package func loses(at now: HubTime) {
        state.withLock { state in
            for key in Array(state.channels.keys) { state.channels[key]?.loses(at: now) }
        }
    }
}
