import CWebSockets

/// The libuv side of an event loop: what makes it turn, wakes it from other threads, and says when a turn ends.
///
/// `@unchecked Sendable`: made by one thread and from `run` on confined to the loop's, but for `wake`, which libuv
/// documents as callable from any. Nothing of it is freed: it lives as long as the process.
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
        // Whoever wakes it before anybody is attached is heard in the first turn.
        async.initialize(to: uv_async_t())
        uv_async_init(pointer, async) { handle in EventLoop.of(handle?.pointee.data)?.drainInbox() }
    }

    /// Calls the event loop back from here on.
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

    /// From any thread: the loop looks at its inbox.
    func wake() { uv_async_send(async) }

    func run() { uv_run(pointer, UV_RUN_DEFAULT) }

    /// One turn, for what there is to do now.
    func runOnce() { uv_run(pointer, UV_RUN_NOWAIT) }

    func stop() { uv_stop(pointer) }

    /// Keeps the loop from waiting for events, or lets it wait: an idle handle is called in each turn.
    func keepsTurning(_ isOn: Bool) {
        if isOn { uv_idle_start(idle) { _ in } } else { uv_idle_stop(idle) }
    }

    /// The time at which this turn began, in monotonic milliseconds.
    var turnTime: Int64 { Int64(uv_now(pointer)) }
}

/// A timer of an event loop, confined to its thread. libuv runs timers before it waits for events, so what runs by one ends
/// its turn itself. Lives as long as the process, as the loop does.
final class LoopTimer {
    private let timer: UnsafeMutablePointer<uv_timer_t>
    private let loop: LibuvLoop
    private let action: () -> Void

    /// - Parameter action: what is done each time; it must not hold the loop.
    init(_ loop: LibuvLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
        timer = .allocate(capacity: 1)
        timer.initialize(to: uv_timer_t())
        uv_timer_init(loop.pointer, timer)
        timer.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    /// Begins anew where it runs already.
    ///
    /// - Parameters:
    ///   - delay: milliseconds.
    ///   - interval: milliseconds from one time to the next; zero: once.
    func start(after delay: UInt64, every interval: UInt64 = 0) {
        uv_timer_start(
            timer,
            { handle in
                guard let data = handle?.pointee.data else { return }
                Unmanaged<LoopTimer>.fromOpaque(data).takeUnretainedValue().action()
            }, delay, interval)
    }

    /// The same as `start(after:)`, by the time of now: the loop's own notion of it may be as old as this turn.
    func start(afterNow delay: UInt64) {
        uv_update_time(loop.pointer)
        start(after: delay)
    }

    func stop() { uv_timer_stop(timer) }
}
