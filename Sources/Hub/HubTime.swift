import Wire

/// The time that the hub is told. `Hub` has no clock of its own: tests advance time by hand.
package struct HubTime: Sendable, Equatable {
    /// Milliseconds on a clock that never goes back.
    package var monotonic: Int64
    /// Milliseconds since 1970.
    package var unix: Int64

    package init(monotonic: Int64, unix: Int64) {
        self.monotonic = monotonic
        self.unix = unix
    }

    package func advanced(by milliseconds: Int64) -> HubTime {
        HubTime(monotonic: monotonic + milliseconds, unix: unix + milliseconds)
    }
}

/// Events caused by the passage of time.
extension Hub {
    /// Call once a second.
    package func performTick(at now: HubTime) {
        advanceTime(to: now)
        performDuties()
        users.advanceTime(to: now)
        followWatched()
        receipts.advanceTime(to: now.monotonic)
        authorization.askAgain(&context)
        expireTokens()
        sweepEmptyConnections()
        advanceReaders()
        history.sweepChannels(channels, at: now)
    }

    /// When to call `wake` next, in monotonic milliseconds. The duty may have been done by then.
    package var nextDue: Int64? { context.nextDue }

    /// Call when a duty is due.
    package func wake(at now: HubTime) {
        advanceTime(to: now)
        performDuties()
    }

    private func performDuties() {
        while let duty = context.nextDuty() {
            switch duty {
            case .leases:
                for channel in presence.endLeases(in: channels, &context) { discardIfIdle(channel) }
            case .presence(let key): if let channel = channels[key] { presence.sendDiff(in: channel, &context) }
            case .occupancy(let key): if let channel = channels[key] { presence.sendOccupancy(in: channel, &context) }
            case .arrivals: settleArrivals()
            case .member(let slot, let member): performDuties(of: member, on: slot)
            case .stream(let key): if let channel = channels[key] { streams.sendDueNews(in: channel, &context) }
            case .typing(let key):
                guard let channel = channels[key] else { break }
                typing.updateTypists(in: channel, &context)
                discardIfIdle(channel)
            }
        }
    }

    /// The interval between sweeps for connections without channels, in milliseconds (the original's
    /// NO_CHANNEL_TIMEOUT_IN_MS).
    static let sweepInterval: Int64 = 600_000

    /// Closes sockets that have had no channels since the previous sweep.
    private func sweepEmptyConnections() {
        let now = context.now.monotonic
        let due = nextSweep ?? now + Self.sweepInterval
        nextSweep = now >= due ? now + Self.sweepInterval : due
        guard now >= due else { return }
        for connection in context.openConnections {
            let isEmpty = connection.memberships.isEmpty
            if isEmpty, connection.wasEmptyAtSweep {
                actions.append(.close(connection.slot, .normal, reason: "no channels"))
            }
            connection.wasEmptyAtSweep = isEmpty
        }
    }
}
