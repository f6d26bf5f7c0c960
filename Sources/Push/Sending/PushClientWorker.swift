import Hub
import Logging

/// What the client's thread does: takes what is to be sent, lets the sender decide, waits, tells what became of it.
struct PushLoop {
    let mailbox: PushMailbox
    let connections: APNsConnections
    let logger: Logger
    let whenDone: @Sendable ([(Push, PushOutcome)]) -> Void
    private var sender: Sender<APNsConnections>

    /// However little is due, statistics are refreshed that often, in milliseconds.
    private static let longestWait: Int64 = 30_000

    init(
        _ configuration: APNsConfiguration, _ set: OpaquePointer, _ mailbox: PushMailbox, _ logger: Logger,
        _ whenDone: @escaping @Sendable ([(Push, PushOutcome)]) -> Void
    ) {
        self.mailbox = mailbox
        self.logger = logger
        self.whenDone = whenDone
        connections = APNsConnections(set, configuration)
        sender = Sender(SenderRules(configuration), key: configuration.key, over: connections)
    }

    mutating func run() {
        while true {
            let (pushes, stopBy) = mailbox.take()
            var now = PushClock.now()
            for push in pushes { sender.add(push, at: now) }
            if stopBy != nil, !sender.isStopping { sender.stop() }
            sender.advance(to: now)
            report(at: now)
            if let stopBy, sender.flights.isEmpty || now.monotonic >= stopBy { break }
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
