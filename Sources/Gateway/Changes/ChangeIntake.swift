import CWebSockets
import Glibc
import Hub

/// Row changes as they reach a loop: passes them on to the hub, a slice in each turn, or holds them back while sockets that read
/// changes lag.
final class ChangeIntake {
    private unowned let loop: EventLoop
    private var queue = ChangeQueue()
    private var slice = ChangeSlice()
    /// More is to be passed on in the next turn, for which nothing has to be waited.
    private(set) var isSliced = false
    /// Wakes the loop for sockets that do not catch up by themselves: those that do wake it anyway.
    private lazy var timer = LoopTimer(loop.libuv) {}

    /// Milliseconds between two looks at changes that are held back.
    private static let interval: UInt64 = 20

    init(loop: EventLoop) {
        self.loop = loop
    }

    var isEmpty: Bool { queue.isEmpty }

    func take(_ batch: ChangeQueue.Batch) {
        queue.append(batch)
        pump()
    }

    /// The turn is over; the next one has a slice of its own.
    func turnEnds() { slice.turnEnds() }

    /// Passes on the changes that are there, until they are held back or the turn's slice is over.
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
        // The hold is over, if there was one.
        _ = holdsBack(changes: false)
    }

    private func holdsBack(changes: Bool) -> Bool {
        // The clock is not read for every change when nobody lags.
        !loop.delivery.slowReaders.isIdle
            && loop.delivery.holdsBack(changes: changes, now: EventLoop.milliseconds)
    }

    private static var wallMicroseconds: Int64 {
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        return Int64(wall.tv_sec) * 1_000_000 + Int64(wall.tv_nsec) / 1000
    }
}
