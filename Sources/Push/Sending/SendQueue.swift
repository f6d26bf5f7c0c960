import DequeModule
import HeapModule
import Hub

/// What waits to be sent, and what is on its way.
///
/// Invariants
///   - Each notification that is added ends in `finished` exactly once.
///   - Of one lane at most one is on its way, and they leave in the order in which they were added.
///   - It never holds more than `capacity`. When it is full, those whose deadline has passed leave; then newcomers are
///     refused, because those that wait are older and their users have been waiting longer. One that replaces another of
///     its lane takes that one's place, so the latest state gets in however full it is.
struct SendQueue {
    typealias Ticket = UInt64

    let capacity: Int
    var finished: [(Push, PushOutcome)] = []
    var flying = 0

    var entries: [Ticket: QueuedPush] = [:]
    var lanes: [String: Lane] = [:]
    /// Lanes that may have one to send; what is not true any more is skipped.
    var ready: [ServerName: Deque<String>] = [:]
    var delayed = Heap<Due<String>>()
    var deadlines = Heap<Due<Ticket>>()
    private var lastTicket: Ticket = 0

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { entries.count }
    var waiting: Int { entries.count - flying }

    mutating func takeFinished() -> [(Push, PushOutcome)] {
        defer { finished = [] }
        return finished
    }

    mutating func add(_ push: Push, at now: HubTime) {
        if let outcome = push.outcomeUnsent { return finished.append((push, outcome)) }
        if push.deadline <= now.unix { return finished.append((push, .expired)) }
        if push.replaces { supersede(push.lane) }
        if entries.count >= capacity { expire(at: now) }
        if entries.count >= capacity { return finished.append((push, .overflow)) }
        lastTicket += 1
        entries[lastTicket] = QueuedPush(push)
        deadlines.insert(Due(time: push.deadline, subject: lastTicket))
        lanes[push.lane, default: Lane()].waiting.append(lastTicket)
        list(push.lane)
        compact()
    }

    /// The next one for that server; it counts as on its way from here on.
    mutating func take(for server: ServerName) -> (ticket: Ticket, entry: QueuedPush)? {
        while let name = ready[server]?.popFirst() {
            guard let lane = lanes[name], lane.isReady, let ticket = lane.waiting.first, let entry = entries[ticket],
                entry.server == server
            else { continue }
            lanes[name]?.waiting.removeFirst()
            lanes[name]?.flying = ticket
            flying += 1
            return (ticket, entry)
        }
        return nil
    }

    func hasReady(for server: ServerName) -> Bool { ready[server]?.isEmpty == false }

    subscript(_ ticket: Ticket) -> QueuedPush? { entries[ticket] }

    /// One that was on its way has come to its end.
    mutating func finish(_ ticket: Ticket, _ outcome: PushOutcome) {
        guard let entry = land(ticket) else { return }
        entries[ticket] = nil
        finished.append((entry.push, outcome))
        list(entry.push.lane)
    }

    /// One that was on its way goes again, before the others of its lane.
    /// - Parameters:
    ///   - time: not before, in monotonic milliseconds.
    ///   - change: notes down why.
    mutating func putBack(
        _ ticket: Ticket, notBefore time: Int64?, at now: HubTime, _ change: (inout QueuedPush) -> Void = { _ in }
    ) {
        guard var entry = entries[ticket] else { return }
        if entry.push.deadline <= now.unix { return finish(ticket, .expired) }
        if lanes[entry.push.lane]?.waiting.contains(where: { entries[$0]?.push.replaces ?? false }) == true {
            return finish(ticket, .superseded)
        }
        guard land(ticket) != nil else { return }
        change(&entry)
        entries[ticket] = entry
        lanes[entry.push.lane, default: Lane()].waiting.prepend(ticket)
        delay(entry.push.lane, until: time)
    }

    /// Ends what is past its deadline, and wakes the lanes whose delay is over.
    mutating func advance(to now: HubTime) {
        expire(at: now)
        while let due = delayed.min, due.time <= now.monotonic {
            delayed.removeMin()
            guard let until = lanes[due.subject]?.notBefore, until <= now.monotonic else { continue }
            lanes[due.subject]?.notBefore = nil
            list(due.subject)
        }
    }

    /// When `advance` has something to do, in monotonic milliseconds.
    func nextDue(at now: HubTime) -> Int64? {
        let deadline = deadlines.min.map { $0.time - now.unix + now.monotonic }
        return [deadline, delayed.min?.time].compactMap { $0 }.min()
    }

    /// Ends all that is not on its way.
    mutating func finishWaiting(_ outcome: PushOutcome) {
        for lane in lanes.values {
            for ticket in lane.waiting { remove(ticket, outcome) }
        }
    }
}
