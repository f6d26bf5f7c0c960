import CWebSockets
import Hub

/// What the hub has to do at certain moments: windows that end, typing that falls silent, news that waited for company.
extension EventLoop {
    /// Sets the timer for the hub's next duty, if that is another one than before.
    func awaitDuties() {
        guard let due = hub.nextDue else { return }
        if let wokenAt, wokenAt <= due { return }
        wokenAt = due
        let delay = max(0, due - Int64(uv_hrtime() / 1_000_000))
        // The loop's own notion of the time may be as old as this turn.
        uv_update_time(loop)
        uv_timer_start(dutyTimer, { handle in EventLoop.of(handle?.pointee.data)?.wakeHub() }, UInt64(delay), 0)
    }

    private func wakeHub() {
        counters.turnBegins()
        wokenAt = nil
        hub.wake(at: now())
        execute()
        endTurn()
    }

    /// Others may take over presences that ended here. What was said of them here has to be on its way before.
    func offerLeases() {
        guard hub.hasOffers else { return }
        postRelays()
        hub.offerLeases()
    }

    func makeDutyTimer() -> UnsafeMutablePointer<uv_timer_t> {
        let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        uv_timer_init(loop, timer)
        timer.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        return timer
    }
}
