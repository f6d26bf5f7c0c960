import CWebSockets
import Glibc
import Hub

/// Receives a loop's row changes and passes them on to the hub, a slice per turn, or holds them back while sockets that
/// read changes lag.
final class ChangeIntake {
    private unowned let loop: EventLoop
    private var queue = ChangeQueue()
    private var slice = ChangeSlice()
    /// The next turn has more to pass on, and starts without waiting for events.
    private(set) var isSliced = false
    /// Wakes the loop for sockets that make no progress; those that do wake it anyway.
    private lazy var timer = LoopTimer(loop.libuv) {}

    /// Milliseconds between two checks of changes that are held back.
    private static let interval: UInt64 = 20

    init(loop: EventLoop) {
        self.loop = loop
    }

    var isEmpty: Bool { queue.isEmpty }

    func take(_ batch: ChangeQueue.Batch) {
        queue.append(batch)
        pump()
    }

    /// Ends the turn; the next one has a slice of its own.
    func turnEnds() { slice.turnEnds() }

    /// Passes on available changes until they are held back or the turn's slice is over.
    func pump() {
        let loop = loop
        isSliced = false
        while true {
            if holdsBack(changes: !queue.isEmpty) { return timer.start(after: Self.interval) }
            if !queue.isEmpty, slice.isOver(at: uv_hrtime(), ofRecovery: queue.isOfRecovery) {
                isSliced = true
                return
            }
            guard let item = queue.next() else { break }
            switch item {
            case .event(.recovery(let id, let step)): loop.recoveries.take(id, step)
            case .event(let event):
                if case .change(let change) = event, let committed = change.committedAtMicroseconds {
                    loop.counters.handedOn(committedAtMicroseconds: committed, at: Self.wallMicroseconds)
                }
                loop.hub.deliverEvent(event)
                loop.execute()
            case .end(let batch): loop.recoveries.taken(batch)
            }
        }
        // Ends the hold, if there is one.
        _ = holdsBack(changes: false)
    }

    private func holdsBack(changes: Bool) -> Bool {
        // Avoids reading the clock for every change while no socket lags.
        !loop.delivery.slowReaders.isIdle
            && loop.delivery.holdsBack(changes: changes, now: EventLoop.milliseconds)
    }

    private static var wallMicroseconds: Int64 {
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        return Int64(wall.tv_sec) * 1_000_000 + Int64(wall.tv_nsec) / 1000
    }
}
