import Glibc
import Hub
import Logging

/// The client's thread: takes notifications, lets the sender decide, waits, and reports outcomes. Confined to that thread.
struct PushClientWorker {
    let mailbox: PushClientMailbox
    let connections: HTTP2Connections
    let logger: Logger
    let whenDone: @Sendable ([(Push, PushOutcome)]) -> Void
    private var sender: Sender<HTTP2Connections>

    /// The longest interval between publications of statistics, in milliseconds.
    private static let longestWait: Int64 = 30_000

    init(
        _ dialect: any PushDialect, _ set: OpaquePointer, _ mailbox: PushClientMailbox, _ logger: Logger,
        _ whenDone: @escaping @Sendable ([(Push, PushOutcome)]) -> Void
    ) {
        self.mailbox = mailbox
        self.logger = logger
        self.whenDone = whenDone
        connections = HTTP2Connections(set, dialect.limits, guardedBy: dialect.endpointRules) { dialect.origin(of: $0) }
        sender = Sender(dialect, over: connections)
    }

    mutating func run() {
        while true {
            let (pushes, stopBy) = mailbox.take()
            var now = PushClock.now()
            for push in pushes { sender.add(push, at: now) }
            if stopBy != nil, !sender.isStopping { sender.stop() }
            sender.advance(to: now)
            report(at: now)
            if let stopBy, sender.inFlight.isEmpty || now.monotonic >= stopBy { break }
            let due = min(sender.nextDue(at: now), stopBy ?? .max)
            connections.wait(min(due - now.monotonic, Self.longestWait))
            now = PushClock.now()
            while let (connection, event) = connections.nextEvent() {
                sender.handle(event, on: connection, at: now)
            }
        }
        sender.abandon()
        for push in mailbox.end() { sender.queue.finished.append((push, .stopped)) }
        report(at: PushClock.now())
    }

    private mutating func report(at now: HubTime) {
        for notice in sender.takeNotices() { logger.log(level: notice.level, "\(notice.text)") }
        let finished = sender.takeFinished()
        mailbox.settle(finished.count, sender.statistics(at: now))
        if !finished.isEmpty { whenDone(finished) }
    }
}

/// The machine's clocks.
enum PushClock {
    static func now() -> HubTime {
        HubTime(monotonic: milliseconds(CLOCK_MONOTONIC), unix: milliseconds(CLOCK_REALTIME))
    }

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
