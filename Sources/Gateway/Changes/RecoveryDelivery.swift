import CWebSockets
import Hub

/// Brings members what they missed as fast as their sockets take it: recovery steps that wait for room, and the pace of
/// each socket.
final class RecoveryDelivery {
    private unowned let loop: EventLoop
    private var deferred = DeferredSteps()
    /// Sockets that are sent what they missed, while some of it is not acknowledged.
    private var paces: [Slot: RecoveryPace] = [:]

    /// Approximate bytes of a change's frame besides the change.
    private static let overhead = 150

    init(loop: EventLoop) {
        self.loop = loop
    }

    // MARK: From the feed

    func take(_ id: RecoveryID, _ step: RecoveryStep) {
        guard let slot = loop.hub.slot(of: id) else { return }
        guard !deferred.has(slot) else { return putOff(.step(id, step), slot) }
        pass(id, step, to: slot, wasDeferred: false)
    }

    /// Continues a recovery's feed once its socket has taken what was sent for it.
    func taken(_ batch: ChangeQueue.Batch) {
        guard let id = batch.recovery, let slot = loop.hub.slot(of: id), deferred.has(slot) else {
            return batch.whenTaken()
        }
        putOff(.taken(batch.whenTaken), slot)
    }

    /// Called at the end of a turn for a socket that has room again.
    func resume(_ slot: Slot) {
        for item in deferred.take(slot) {
            guard !deferred.has(slot) else {
                deferred.append(item, for: slot)
                continue
            }
            switch item {
            case .step(let id, let step): pass(id, step, to: slot, wasDeferred: true)
            case .taken(let whenTaken): whenTaken()
            }
        }
    }

    /// Forgets a closed socket and lets the feed continue.
    func forget(_ slot: Slot) {
        paces[slot] = nil
        for case .taken(let whenTaken) in deferred.take(slot) { whenTaken() }
    }

    private func pass(_ id: RecoveryID, _ step: RecoveryStep, to slot: Slot, wasDeferred: Bool) {
        let loop = loop
        switch step {
        case .changes(let changes):
            for (index, change) in changes.enumerated() {
                guard paces[slot]?.hasRoom ?? true else {
                    // The answer to a ping continues this.
                    return deferred.append(.step(id, .changes(Array(changes[index...]))), for: slot)
                }
                guard loop.delivery.hasRoom(slot, for: change.data.count) else {
                    return putOff(.step(id, .changes(Array(changes[index...]))), slot)
                }
                loop.hub.receiveRecovery(id, .changes([change]))
                loop.execute()
                // For an HTTP reader of events, nothing is known beyond its room.
                guard !loop.delivery.sockets[Int(slot)].isAnswer else { continue }
                paces[slot, default: RecoveryPace()].sends(change.data.count + Self.overhead)
                if paces[slot]?.wantsPing == true { loop.pings.send(to: slot) }
            }
        case .caughtUp(let cursor) where wasDeferred:
            // Live changes have passed the recovery by since that cursor.
            loop.hub.receiveRecovery(id, .passedBy(since: cursor))
            loop.execute()
        case .caughtUp:
            loop.hub.receiveRecovery(id, step)
            loop.execute()
            // The hub sent a ping with it.
            if loop.hub.awaitsPong(slot) { pinged(slot) }
        case .began, .rowsBegin, .rowsEnd, .changesLost, .passedBy, .unavailable, .undecided:
            loop.hub.receiveRecovery(id, step)
            loop.execute()
        }
    }

    private func putOff(_ item: DeferredSteps.Item, _ slot: Slot) {
        deferred.append(item, for: slot)
        loop.delivery.awaitRoom(slot)
    }

    // MARK: Pace

    /// Whether the socket has an acknowledgement ping to answer.
    func awaitsPong(from slot: Slot) -> Bool { paces[slot]?.pingedAt != nil }

    /// Records an acknowledgement ping to the socket.
    func pinged(_ slot: Slot) { paces[slot]?.pings(at: EventLoop.milliseconds) }

    /// Handles the socket's answer to its last acknowledgement ping.
    func answered(_ slot: Slot) {
        guard paces[slot] != nil else { return }
        paces[slot]?.isAnswered(at: EventLoop.milliseconds)
        goOn(slot)
    }

    private func goOn(_ slot: Slot) {
        if deferred.has(slot) { loop.delivery.awaitRoom(slot) }
        if paces[slot]?.wantsPing == true { loop.pings.send(to: slot) }
        if paces[slot]?.isIdle == true, !deferred.has(slot) { paces[slot] = nil }
    }

    /// Called once a second: goes on without sockets' answers if they are overdue.
    func endPatience() {
        let now = EventLoop.milliseconds
        for slot in Array(paces.keys) where loop.delivery.pending.isEmpty(slot) {
            if paces[slot]?.givesUp(at: now) == true { goOn(slot) }
        }
    }
}
