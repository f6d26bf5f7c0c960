import CWebSockets
import Hub
import Wire

/// The treatment of sockets that read more slowly than their channels send, in steps:
///
/// 1. Above the lag mark (a quarter of the cap), steps of presence and typing are no longer queued. Once nothing else
///    is pending, the socket gets the channel's `presence_state` or `typing_state`, which contains the same.
/// 2. If the socket reads row changes, the feed is held back for it for a limited time (`SlowReaders`).
/// 3. At the cap, a close frame replaces everything pending. The client reconnects, and catch-up brings the changes. A
///    socket that does not even take the close frame is cut off.
extension Delivery {
    /// Seconds in which a peer must take some bytes, or answer the close frame.
    private static let closeTimeout: UInt8 = 3
    /// Seconds after which a socket is cut off even if it takes bytes: enough for megabytes over a slow link, and a
    /// bound for a peer that takes a byte now and then on purpose.
    private static let longestClose: UInt8 = 60

    // MARK: States

    /// Whether to leave out a step to this state for the socket, which gets the state itself later.
    mutating func spares(_ slot: Slot, _ state: ChannelState) -> Bool {
        let socket = sockets[Int(slot)]
        guard socket.isBehind || socket.needsResync, socket.isOpen, !socket.isClosing else { return false }
        guard resyncs.spare(slot, state, isBehind: socket.isBehind) else { return false }
        sockets[Int(slot)].needsResync = true
        counters.coalesced += 1
        return true
    }

    /// The next state for a socket that has nothing pending. It must be sent in this turn.
    mutating func takeResync() -> (slot: Slot, state: ChannelState)? {
        while let slot = resyncs.ready.last {
            guard pending.isEmpty(slot), let state = resyncs.take(slot) else {
                resyncs.ready.removeLast()
                continue
            }
            sockets[Int(slot)].needsResync = resyncs.has(slot)
            return (slot, state)
        }
        return nil
    }

    // MARK: Room for what was missed

    /// Whether there is room for a frame of about this length that could as well be sent later.
    func hasRoom(_ slot: Slot, for length: Int) -> Bool {
        pending.isEmpty(slot) || pending.bytes(slot) + length <= roomMark
    }

    mutating func awaitRoom(_ slot: Slot) {
        guard !sockets[Int(slot)].isAwaited else { return }
        sockets[Int(slot)].isAwaited = true
        if pending.isEmpty(slot) { relieve(slot) }
    }

    private mutating func relieve(_ slot: Slot) {
        sockets[Int(slot)].isAwaited = false
        relieved.append(slot)
    }

    /// The next socket that has room again.
    mutating func takeRelieved() -> Slot? { relieved.popLast() }

    // MARK: Lagging

    mutating func fellBehind(_ slot: Slot) {
        let socket = sockets[Int(slot)]
        sockets[Int(slot)].isBehind = true
        guard socket.readsChanges, !socket.isLagging, !socket.isWrittenOff else { return }
        sockets[Int(slot)].isLagging = true
        sockets[Int(slot)].hasTaken = false
        slowReaders.add(slot)
        readers.fellBehind()
    }

    /// Updates the socket's marks after bytes went out.
    mutating func noteProgress(_ slot: Slot) {
        if sockets[Int(slot)].isBehind, pending.bytes(slot) < lagMark { hasCaughtUp(slot) }
        if sockets[Int(slot)].needsResync, pending.isEmpty(slot) { resyncs.ready.append(slot) }
        if sockets[Int(slot)].isAwaited, pending.bytes(slot) <= roomMark { relieve(slot) }
        noteEnd(ofAnswer: slot)
    }

    mutating func hasCaughtUp(_ slot: Slot) {
        if sockets[Int(slot)].isLagging { endLag(slot) }
        sockets[Int(slot)].isWrittenOff = false
        sockets[Int(slot)].isBehind = false
    }

    private mutating func endLag(_ slot: Slot) {
        sockets[Int(slot)].isLagging = false
        slowReaders.remove(slot)
        readers.caughtUp()
    }

    /// Whether to hold back the feed for sockets that lag.
    ///
    /// - Parameters:
    ///   - changes: whether there are changes to hold back.
    ///   - now: milliseconds on a monotonic clock.
    mutating func holdsBack(changes: Bool, now: Int64) -> Bool {
        guard !slowReaders.isIdle else { return false }
        // Swapped out, because the closure cannot read what is being mutated.
        var sockets = [Socket]()
        swap(&sockets, &self.sockets)
        let given = slowReaders.look(now: now, holds: changes, mostLag: readers.mostLag) { slot in
            defer { sockets[Int(slot)].hasTaken = false }
            return sockets[Int(slot)].hasTaken
        }
        swap(&sockets, &self.sockets)
        for slot in given {
            endLag(slot)
            self.sockets[Int(slot)].isWrittenOff = true
            counters.writtenOff += 1
        }
        return changes && !slowReaders.isEmpty
    }

    // MARK: Closing

    /// Closes a socket at its cap: a close frame replaces everything pending. The rest of a partly sent frame, which
    /// lws has, goes first.
    mutating func dismiss(_ slot: Slot) {
        guard sockets[Int(slot)].isOpen, !sockets[Int(slot)].isSettled else { return }
        counters.closed += 1
        discardPending(slot)
        hasCaughtUp(slot)
        guard !sockets[Int(slot)].isAnswer else { return cutOff(slot) }
        sockets[Int(slot)].isClosing = false
        beginClosing(slot, .tryAgainLater, reason: "slow reader")
    }

    mutating func cutOff(_ slot: Slot) {
        guard sockets[Int(slot)].isOpen else { return }
        sockets[Int(slot)].isClosing = true
        sockets[Int(slot)].isDismissed = true
        if reasons[slot] == nil { reasons[slot] = "cut off" }
        discardPending(slot)
        guard !sockets[Int(slot)].isAnswer else { return answers.cut.append(slot) }
        lws_set_timeout(sockets[Int(slot)].wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
        // lws would set its timer only after the next event, which may be seconds away.
        lws_cancel_service(lws_get_context(sockets[Int(slot)].wsi))
    }

    /// Called once a second for a socket that is closing.
    mutating func closingGoesOn(_ slot: Slot) {
        if takes(slot) { sockets[Int(slot)].stillSeconds = 0 }
        let socket = sockets[Int(slot)]
        guard socket.stillSeconds >= Self.closeTimeout || socket.closingSeconds >= Self.longestClose else {
            sockets[Int(slot)].stillSeconds += 1
            sockets[Int(slot)].closingSeconds += 1
            return
        }
        if !pending.isEmpty(slot) { counters.cut += 1 }
        cutOff(slot)
    }

    /// Whether the peer took any bytes since the last call, according to the kernel. On a slow link a socket can be
    /// full for many seconds while its bytes are on their way, because it becomes writable only when a third of it is
    /// free.
    private mutating func takes(_ slot: Slot) -> Bool {
        let hasTaken = sockets[Int(slot)].hasTaken && !pending.isEmpty(slot)
        sockets[Int(slot)].hasTaken = false
        let acknowledged = Int(roost_bytes_acked(sockets[Int(slot)].transport))
        guard acknowledged >= 0 else { return hasTaken }
        defer { accounts[Int(slot)].bytesSeen = acknowledged }
        return acknowledged > accounts[Int(slot)].bytesSeen
    }
}
