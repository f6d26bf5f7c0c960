import CWebSockets
import Glibc
import Hub

/// What waits for slow readers, and what is made up for; see `Delivery+SlowReaders`.
extension EventLoop {
    /// Passes on the changes that are there, until they are held back.
    func pumpChanges() {
        while true {
            if holdsBack(changes: !changes.isEmpty) {
                // Sockets that catch up wake the loop; the timer is for those that do not.
                uv_timer_start(holdTimer, { _ in }, 20, 0)
                return
            }
            guard let item = changes.next() else { break }
            switch item {
            case .event(.recovery(let id, let step)): recover(id, step)
            case .event(let event):
                if case .change(let change) = event, let committed = change.committedAtMicroseconds {
                    counters.handedOn(committedAtMicroseconds: committed, at: Self.wallMicroseconds)
                }
                hub.deliver(event)
                execute()
            case .end(let batch): recoveryTaken(batch)
            }
        }
        // The hold is over, if there was one.
        _ = holdsBack(changes: false)
    }

    private static var wallMicroseconds: Int64 {
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        return Int64(wall.tv_sec) * 1_000_000 + Int64(wall.tv_nsec) / 1000
    }

    private func holdsBack(changes: Bool) -> Bool {
        // The clock is not read for every change when nobody lags.
        !delivery.laggards.isIdle && delivery.holdsBack(changes: changes, now: Int64(uv_hrtime() / 1_000_000))
    }

    /// Sockets that have caught up are told the states that they were spared the steps to.
    func payOwedStates() {
        while let owed = delivery.takeOwed() {
            hub.show(owed.state, to: owed.slot)
            execute()
            if delivery.hasWork { delivery.flush() }
        }
    }
}
