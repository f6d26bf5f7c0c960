import CWebSockets

/// The libuv side of an event loop: runs it, wakes it from other threads, and reports the end of each turn.
///
/// `@unchecked Sendable`: created by one thread, and from `run` on confined to the loop's thread, except for `wake`,
/// which libuv documents as callable from any thread. Nothing of it is freed: it lives as long as the process.
final class LibuvLoop: @unchecked Sendable {
    let pointer: UnsafeMutablePointer<uv_loop_t>
    private let async: UnsafeMutablePointer<uv_async_t>
    private let check: UnsafeMutablePointer<uv_check_t>
    private let prepare: UnsafeMutablePointer<uv_prepare_t>
    private let idle: UnsafeMutablePointer<uv_idle_t>

    init() {
        pointer = .allocate(capacity: 1)
        async = .allocate(capacity: 1)
        check = .allocate(capacity: 1)
        prepare = .allocate(capacity: 1)
        idle = .allocate(capacity: 1)
        uv_loop_init(pointer)
        // A wake-up before a loop is attached takes effect in the first turn.
        async.initialize(to: uv_async_t())
        uv_async_init(pointer, async) { handle in EventLoop.of(handle?.pointee.data)?.drainInbox() }
    }

    /// Attaches the event loop that receives the callbacks.
    func attach(_ loop: EventLoop) {
        let data = Unmanaged.passUnretained(loop).toOpaque()
        async.pointee.data = data
        uv_check_init(pointer, check)
        check.pointee.data = data
        uv_check_start(check) { handle in EventLoop.of(handle?.pointee.data)?.endTurn() }
        uv_prepare_init(pointer, prepare)
        prepare.pointee.data = data
        uv_prepare_start(prepare) { handle in EventLoop.of(handle?.pointee.data)?.endEarlyTurn() }
        uv_idle_init(pointer, idle)
    }

    /// Makes the loop check its inbox. Safe from any thread.
    func wake() { uv_async_send(async) }

    func run() { uv_run(pointer, UV_RUN_DEFAULT) }

    /// Runs one turn, without waiting for events.
    func runOnce() { uv_run(pointer, UV_RUN_NOWAIT) }

    func stop() { uv_stop(pointer) }

    /// Keeps the loop from waiting for events, or lets it wait. An active idle handle prevents waiting.
    func keepsTurning(_ isOn: Bool) {
        if isOn { uv_idle_start(idle) { _ in } } else { uv_idle_stop(idle) }
    }

    /// The start of this turn, in monotonic milliseconds.
    var turnTime: Int64 { Int64(uv_now(pointer)) }
}

/// A timer of an event loop, confined to its thread. libuv runs timers before it waits for events, so a timer's action
/// must end its turn itself. Lives as long as the process, like the loop.
final class LoopTimer {
    private let timer: UnsafeMutablePointer<uv_timer_t>
    private let loop: LibuvLoop
    private let action: () -> Void

    /// - Parameter action: called each time; it must not retain the loop.
    init(_ loop: LibuvLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
        timer = .allocate(capacity: 1)
        timer.initialize(to: uv_timer_t())
        uv_timer_init(loop.pointer, timer)
        timer.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    /// Starts the timer, or restarts it if it is running.
    ///
    /// - Parameters:
    ///   - delay: milliseconds.
    ///   - interval: milliseconds between repetitions; zero for none.
    func start(after delay: UInt64, every interval: UInt64 = 0) {
        uv_timer_start(
            timer,
            { handle in
                guard let data = handle?.pointee.data else { return }
                Unmanaged<LoopTimer>.fromOpaque(data).takeUnretainedValue().action()
            }, delay, interval)
    }

    /// Like `start(after:)`, counting from the actual time: the loop's own time may be as old as this turn.
    func start(afterNow delay: UInt64) {
        uv_update_time(loop.pointer)
        start(after: delay)
    }

    func stop() { uv_timer_stop(timer) }
}
