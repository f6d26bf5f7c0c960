import CWebSockets
import Hub

/// How fast a socket is read. A sender that is faster is not refused anything: it is left unread until it owes nothing,
/// so that TCP makes it wait, and what it sent is handled in full.
extension EventLoop {
    /// Counts a piece of a message.
    func pace(_ slot: Slot, _ wsi: OpaquePointer, bytes: Int, endsMessage: Bool) {
        // The time of this turn: to look at a clock for each piece would cost more than to handle it.
        let now = Int64(uv_now(loop))
        let pause = hub.pause(after: bytes, endsMessage: endsMessage, from: slot, at: now)
        guard pause > 0 else { return }
        lws_rx_flow_control(wsi, 0)
        // Nothing more will be read in this turn, so nothing is to wait for it.
        lastRead = -1
        if pauses.isEmpty { startPauseTimer() }
        pauses.begin(slot, wsi, until: now + max(pause, Pauses.grain))
    }

    private func startPauseTimer() {
        let grain = UInt64(Pauses.grain)
        uv_timer_start(
            pauseTimer,
            { handle in
                guard let data = handle?.pointee.data else { return }
                Unmanaged<EventLoop>.fromOpaque(data).takeUnretainedValue().endPauses()
            }, grain, grain)
    }

    private func endPauses() {
        for wsi in pauses.takeDue(at: Int64(uv_now(loop))) { lws_rx_flow_control(wsi, 1) }
        if pauses.isEmpty { uv_timer_stop(pauseTimer) }
    }

    func makePauseTimer() -> UnsafeMutablePointer<uv_timer_t> {
        let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        uv_timer_init(loop, timer)
        timer.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        return timer
    }
}
