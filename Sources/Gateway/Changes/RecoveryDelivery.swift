import CWebSockets
import Hub

/// Brings members what they missed as fast as their sockets take it: the steps of recoveries that wait for room, and the pace
/// of each socket.
final class RecoveryDelivery {
    private unowned let loop: EventLoop
    private var deferred = DeferredSteps()
    /// Of sockets that are sent what they missed, while some of it is not acknowledged.
    private var paces: [Slot: RecoveryPace] = [:]

    /// About as many bytes as a change's frame has beside the change.
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

    /// The feed goes on with a recovery when its socket has taken what was sent for it.
    func taken(_ batch: ChangeQueue.Batch) {
        guard let id = batch.recovery, let slot = loop.hub.slot(of: id), deferred.has(slot) else {
            return batch.whenTaken()
        }
        putOff(.taken(batch.whenTaken), slot)
    }

    /// At the end of a turn: a socket has room again.
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

    /// The socket is gone: the feed waits for nothing any more.
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
                    // The answer to a ping goes on with it.
                    return deferred.append(.step(id, .changes(Array(changes[index...]))), for: slot)
                }
                guard loop.delivery.hasRoom(slot, for: change.data.count) else {
                    return putOff(.step(id, .changes(Array(changes[index...]))), slot)
                }
                loop.hub.receiveRecovery(id, .changes([change]))
                loop.execute()
                // What room it has is all that is known of a reader of events.
                guard !loop.delivery.sockets[Int(slot)].isAnswer else { continue }
                paces[slot, default: RecoveryPace()].sends(change.data.count + Self.overhead)
                if paces[slot]?.wantsPing == true { loop.pings.send(to: slot) }
            }
        case .caughtUp(let cursor) where wasDeferred:
            // What comes live has been passing it by since then.
            loop.hub.receiveRecovery(id, .passedBy(since: cursor))
            loop.execute()
        case .caughtUp:
            loop.hub.receiveRecovery(id, step)
            loop.execute()
            // A ping was part of that.
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

    /// The socket was sent a ping that acknowledges, and has not answered it.
    func awaitsPong(from slot: Slot) -> Bool { paces[slot]?.pingedAt != nil }

    /// The socket was sent a ping that acknowledges.
    func pinged(_ slot: Slot) { paces[slot]?.pings(at: EventLoop.milliseconds) }

    /// The socket answered the last such ping.
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

    /// Once a second: sockets that answer no pings.
    func endPatience() {
        let now = EventLoop.milliseconds
        for slot in Array(paces.keys) where loop.delivery.pending.isEmpty(slot) {
            if paces[slot]?.givesUp(at: now) == true { goOn(slot) }
        }
    }
}
