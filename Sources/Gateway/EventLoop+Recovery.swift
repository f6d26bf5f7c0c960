import CWebSockets
import Hub

/// Brings members what they missed as fast as their sockets take it.
extension EventLoop {
    func recover(_ id: RecoveryID, _ step: RecoveryStep) {
        guard let slot = hub.slot(of: id) else { return }
        guard !parked.has(slot) else { return park(.step(id, step), slot) }
        pass(id, step, to: slot, wasParked: false)
    }

    /// The feed goes on with a recovery when its socket has taken what was sent for it.
    func recoveryTaken(_ batch: ChangeQueue.Batch) {
        guard let id = batch.recovery, let slot = hub.slot(of: id), parked.has(slot) else { return batch.whenTaken() }
        park(.taken(batch.whenTaken), slot)
    }

    /// At the end of a turn: sockets that have room again.
    func unpark() {
        while let slot = delivery.takeRelieved() {
            for item in parked.take(slot) {
                guard !parked.has(slot) else {
                    parked.append(item, for: slot)
                    continue
                }
                switch item {
                case .step(let id, let step): pass(id, step, to: slot, wasParked: true)
                case .taken(let whenTaken): whenTaken()
                }
            }
            if delivery.hasWork { delivery.flush() }
        }
    }

    /// The socket is gone: the feed waits for nothing any more.
    func forgetParked(_ slot: Slot) {
        paces[slot] = nil
        for case .taken(let whenTaken) in parked.take(slot) { whenTaken() }
    }

    private func pass(_ id: RecoveryID, _ step: RecoveryStep, to slot: Slot, wasParked: Bool) {
        switch step {
        case .changes(let changes):
            for (index, change) in changes.enumerated() {
                guard paces[slot]?.hasRoom ?? true else {
                    // The answer to a ping goes on with it.
                    return parked.append(.step(id, .changes(Array(changes[index...]))), for: slot)
                }
                guard delivery.hasRoom(slot, for: change.data.count) else {
                    return park(.step(id, .changes(Array(changes[index...]))), slot)
                }
                hub.recovery(id, .changes([change]))
                execute()
                paces[slot, default: RecoveryPace()].sends(change.data.count + Self.overhead)
                if paces[slot]?.wantsProof == true { askForProof(slot) }
            }
        case .caughtUp(let cursor) where wasParked:
            // What comes live has been passing it by since then.
            hub.recovery(id, .passedBy(since: cursor))
            execute()
        case .caughtUp:
            hub.recovery(id, step)
            execute()
            // A ping was part of that.
            if hub.awaitsPong(slot) { paces[slot]?.asks(at: Self.milliseconds) }
        case .began, .passedBy, .unavailable, .undecided:
            hub.recovery(id, step)
            execute()
        }
    }

    /// About as many bytes as a change's frame has beside the change.
    private static let overhead = 150

    private func park(_ item: ParkedSteps.Item, _ slot: Slot) {
        parked.append(item, for: slot)
        delivery.awaitRoom(slot)
    }

    // MARK: Pace

    static var milliseconds: Int64 { Int64(uv_hrtime() / 1_000_000) }

    /// The socket answered the last ping that asks for a proof.
    func paceIsAnswered(_ slot: Slot) {
        guard paces[slot] != nil else { return }
        paces[slot]?.isAnswered(at: Self.milliseconds)
        goOn(slot)
    }

    private func goOn(_ slot: Slot) {
        if parked.has(slot) { delivery.awaitRoom(slot) }
        if paces[slot]?.wantsProof == true { askForProof(slot) }
        if paces[slot]?.isIdle == true, !parked.has(slot) { paces[slot] = nil }
    }

    /// Once a second: sockets that answer no pings.
    func lookAfterPaces() {
        let now = Self.milliseconds
        for slot in Array(paces.keys) where delivery.pending.isEmpty(slot) {
            if paces[slot]?.givesUp(at: now) == true { goOn(slot) }
        }
    }
}
