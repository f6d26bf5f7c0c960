import CWebSockets
import Hub

/// Sockets that are not read for a moment, because they sent faster than allowed. Such a sender is refused nothing:
/// reading pauses until it owes nothing, so that TCP makes it wait, and everything it sent is handled.
///
/// Confined to the loop's thread.
final class ReadPauses {
    private var until: [Slot: (wsi: OpaquePointer, time: Int64)] = [:]
    private let libuv: LibuvLoop
    private lazy var timer = LoopTimer(libuv) { [unowned self] in endDue() }

    /// Milliseconds between checks for sockets to resume, and the shortest pause: shorter ones would cost a loop more
    /// than they save.
    private static let grain: Int64 = 20

    init(_ libuv: LibuvLoop) {
        self.libuv = libuv
    }

    /// - Parameter pause: milliseconds from the start of this turn.
    func begin(_ slot: Slot, _ wsi: OpaquePointer, for pause: Int64) {
        lws_rx_flow_control(wsi, 0)
        if until.isEmpty { timer.start(after: UInt64(Self.grain), every: UInt64(Self.grain)) }
        until[slot] = (wsi, libuv.turnTime + max(pause, Self.grain))
    }

    /// Forgets a closed socket.
    func forget(_ slot: Slot) {
        if !until.isEmpty { until[slot] = nil }
    }

    private func endDue() {
        let now = libuv.turnTime
        for (slot, pause) in until where pause.time <= now {
            until[slot] = nil
            lws_rx_flow_control(pause.wsi, 1)
        }
        if until.isEmpty { timer.stop() }
    }
}
