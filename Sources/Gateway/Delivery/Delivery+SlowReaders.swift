import CWebSockets
import Hub
import Wire

/// What becomes of sockets that read more slowly than their channels speak. In steps:
///
/// 1. Above the lag mark (a quarter of the cap) steps of presence and typing are not queued any more. The socket is to be
///    sent the channel's `presence_state` or `typing_state`, which says the same, when nothing else waits for it.
/// 2. If it reads row changes, the feed is held back for it for a while (`SlowReaders`), then no longer.
/// 3. At the cap everything that waits for it is thrown away and a close frame takes its place. Its client reconnects, and
///    catch-up brings the changes. A socket that does not even take that is cut off.
extension Delivery {
    /// Seconds in which a peer has to take something, or to answer the close frame.
    private static let closeTimeout: UInt8 = 3
    /// Seconds after which it is cut off though it takes something: for megabytes over a slow link, and no longer for who takes
    /// a byte now and then on purpose.
    private static let longestClose: UInt8 = 60

    // MARK: States

    /// Whether a step to this state is not to be queued for the socket; the state follows then.
    mutating func spares(_ slot: Slot, _ state: ChannelState) -> Bool {
        let socket = sockets[Int(slot)]
        guard socket.isBehind || socket.needsResync, socket.isOpen, !socket.isClosing else { return false }
        guard resyncs.spare(slot, state, isBehind: socket.isBehind) else { return false }
        sockets[Int(slot)].needsResync = true
        counters.coalesced += 1
        return true
    }

    /// A state to be sent to a socket for which nothing else waits. It must be sent in this turn.
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

    /// Whether a frame of about so many bytes can be sent, of those that can as well be sent later.
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

    /// A socket that has room again for what waits.
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

    /// After bytes went out.
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

    /// Whether the feed is to be held back for sockets that lag.
    ///
    /// - Parameters:
    ///   - changes: whether there are any to hold back.
    ///   - now: milliseconds on a clock that only goes forward.
    mutating func holdsBack(changes: Bool, now: Int64) -> Bool {
        guard !slowReaders.isIdle else { return false }
        // They change places for a moment, as the closure cannot reach into what is being changed.
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

    /// A socket at its cap: a close frame instead of all that waits. What lws has of a frame that is partly out goes first.
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
        // lws sets its timer for this when it has handled the next event, which may be seconds away.
        lws_cancel_service(lws_get_context(sockets[Int(slot)].wsi))
    }

    /// Once a second, for a socket that is closing.
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

    /// Whether the peer took anything since this was asked last. It is asked of the kernel: behind a slow link a socket is full for
    /// many seconds, as it takes more only when a third of it is free, and what it has is on its way meanwhile.
    private mutating func takes(_ slot: Slot) -> Bool {
        let hasTaken = sockets[Int(slot)].hasTaken && !pending.isEmpty(slot)
        sockets[Int(slot)].hasTaken = false
        let acknowledged = Int(roost_bytes_acked(sockets[Int(slot)].transport))
        guard acknowledged >= 0 else { return hasTaken }
        defer { accounts[Int(slot)].bytesSeen = acknowledged }
        return acknowledged > accounts[Int(slot)].bytesSeen
    }
}
