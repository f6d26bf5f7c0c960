import DequeModule
import Hub
import Wire

/// The notifications that wait to be sent, and those in flight.
///
/// Invariants
///   - Each notification that is added ends in `finished` exactly once.
///   - Of one lane at most one is in flight, and they leave in the order in which they were added.
///   - It never contains more than `capacity`. When it is full, those past their deadline leave; then new ones are refused, because those
///     that wait are older and their users have been waiting longer. One that replaces another of its lane takes its place, so the
///     latest state gets in even when the queue is full.
struct SendQueue {
    typealias Ticket = UInt64

    let capacity: Int
    var finished: [(Push, PushOutcome)] = []
    var inFlight = 0

    var entries: [Ticket: QueuedPush] = [:]
    var lanes: [Name: Lane] = [:]
    /// Lanes that may have a notification to send, by server. Outdated entries are skipped.
    var ready: [ServerName: Deque<Name>] = [:]
    /// Delayed lanes, in monotonic milliseconds.
    var delayed = TimerQueue<Name>()
    /// The deadlines of waiting notifications, in milliseconds since 1970.
    var deadlines = TimerQueue<Ticket>()
    private var lastTicket: Ticket = 0

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { entries.count }
    var waiting: Int { entries.count - inFlight }

    mutating func takeFinished() -> [(Push, PushOutcome)] {
        defer { finished = [] }
        return finished
    }

    /// - Parameter server: the server to send it to; nil for its target's.
    mutating func add(_ push: Push, to server: ServerName? = nil, at now: HubTime) {
        if push.deadline <= now.unix { return finished.append((push, .expired)) }
        if push.replaces { supersede(push.lane) }
        if entries.count >= capacity { expire(at: now) }
        if entries.count >= capacity { return finished.append((push, .overflow)) }
        lastTicket += 1
        entries[lastTicket] = QueuedPush(push, to: server)
        deadlines.setDue(lastTicket, at: push.deadline)
        lanes[push.lane, default: Lane()].waiting.append(lastTicket)
        list(push.lane)
        compact()
    }

    /// Takes the next notification for a server; it is then in flight.
    mutating func take(for server: ServerName) -> (ticket: Ticket, entry: QueuedPush)? {
        while let name = ready[server]?.popFirst() {
            guard let lane = lanes[name], lane.isReady, let ticket = lane.waiting.first, let entry = entries[ticket],
                entry.server == server
            else { continue }
            lanes[name]?.waiting.removeFirst()
            lanes[name]?.inFlight = ticket
            inFlight += 1
            return (ticket, entry)
        }
        return nil
    }

    func hasReady(for server: ServerName) -> Bool { ready[server]?.isEmpty == false }

    subscript(_ ticket: Ticket) -> QueuedPush? { entries[ticket] }

    func isInFlight(_ ticket: Ticket) -> Bool {
        entries[ticket].flatMap { lanes[$0.push.lane]?.inFlight } == ticket
    }

    /// Notes the environment that a notification's token belongs to, so that those behind it are sent there at once.
    mutating func noteEnvironment(_ environment: PushEnvironment, of ticket: Ticket) {
        guard let push = entries[ticket]?.push else { return }
        entries[ticket]?.push.foundEnvironment = environment
        for other in lanes[push.lane]?.waiting ?? [] where entries[other]?.push.target == push.target {
            entries[other]?.server = ServerName(environment)
        }
    }

    /// Ends a notification that was in flight.
    mutating func finish(_ ticket: Ticket, _ outcome: PushOutcome) {
        guard let entry = land(ticket) else { return }
        entries[ticket] = nil
        deadlines.removeSubject(ticket)
        finished.append((entry.push, outcome))
        list(entry.push.lane)
    }

    /// Puts a notification that was in flight back into the queue, before the others of its lane.
    ///
    /// - Parameters:
    ///   - time: the time when it may leave again, in monotonic milliseconds; nil for at once.
    ///   - change: notes the reason in the entry.
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

    /// Ends notifications past their deadline, and lists the lanes whose delay is over.
    mutating func advance(to now: HubTime) {
        expire(at: now)
        while let name = delayed.takeDue(at: now.monotonic) {
            lanes[name]?.notBefore = nil
            list(name)
        }
    }

    /// The time when `advance` next has something to do, in monotonic milliseconds.
    func nextDue(at now: HubTime) -> Int64? {
        let deadline = deadlines.next.map { $0 - now.unix + now.monotonic }
        return [deadline, delayed.next].compactMap { $0 }.min()
    }

    /// Ends all notifications that are not in flight.
    mutating func finishWaiting(_ outcome: PushOutcome) {
        for lane in lanes.values {
            for ticket in lane.waiting { remove(ticket, outcome) }
        }
    }
}

extension SendQueue {
    /// Lists a lane under the server of its first notification, if it may be sent.
    mutating func list(_ name: Name) {
        guard let lane = lanes[name] else { return }
        if lane.isEmpty {
            discard(name)
        } else if lane.isReady, let ticket = lane.waiting.first, let server = entries[ticket]?.server {
            ready[server, default: []].append(name)
        }
    }

    private mutating func discard(_ name: Name) {
        lanes[name] = nil
        delayed.removeSubject(name)
    }

    /// Delays a lane until `time`, in monotonic milliseconds.
    mutating func delay(_ name: Name, until time: Int64?) {
        guard let time else { return list(name) }
        lanes[name]?.notBefore = time
        delayed.setDue(name, at: time)
    }

    /// Marks a notification as no longer in flight.
    ///
    /// - Returns: its entry; nil if it was not in flight.
    mutating func land(_ ticket: Ticket) -> QueuedPush? {
        guard let entry = entries[ticket], lanes[entry.push.lane]?.inFlight == ticket else { return nil }
        lanes[entry.push.lane]?.inFlight = nil
        inFlight -= 1
        return entry
    }

    /// Ends a waiting notification.
    mutating func remove(_ ticket: Ticket, _ outcome: PushOutcome) {
        guard let entry = entries.removeValue(forKey: ticket) else { return }
        deadlines.removeSubject(ticket)
        let name = entry.push.lane
        if let index = lanes[name]?.waiting.firstIndex(of: ticket) { lanes[name]?.waiting.remove(at: index) }
        finished.append((entry.push, outcome))
        if lanes[name]?.isEmpty == true { discard(name) }
    }

    /// Ends a waiting notification, and lets the next one of its lane go.
    mutating func end(_ ticket: Ticket, _ outcome: PushOutcome) {
        guard let lane = entries[ticket]?.push.lane else { return }
        remove(ticket, outcome)
        list(lane)
    }

    /// Ends all waiting notifications of a lane.
    mutating func supersede(_ name: Name) {
        for ticket in lanes[name]?.waiting ?? [] { remove(ticket, .superseded) }
    }

    /// Ends waiting notifications past their deadline.
    mutating func expire(at now: HubTime) {
        while let ticket = deadlines.takeDue(at: now.unix) {
            // The deadline of one in flight is checked when it comes back.
            guard let entry = entries[ticket], lanes[entry.push.lane]?.inFlight != ticket else { continue }
            remove(ticket, .expired)
            list(entry.push.lane)
        }
    }

    /// Drops outdated entries of the lists once they are the majority, so that an hour of new notifications while nothing can be sent
    /// leaves only a bounded number behind.
    mutating func compact() {
        for (server, names) in ready where names.count > 2 * lanes.count + 64 {
            var seen: Set<Name> = []
            ready[server] = Deque(
                names.filter { name in
                    guard let lane = lanes[name], lane.isReady, let ticket = lane.waiting.first else { return false }
                    return entries[ticket]?.server == server && seen.insert(name).inserted
                })
        }
    }
}

/// Notifications that leave one after the other.
struct Lane {
    var waiting: Deque<SendQueue.Ticket> = []
    /// The notification that is in flight.
    var inFlight: SendQueue.Ticket?
    /// The time when the lane may send again, in monotonic milliseconds; nil for at once.
    var notBefore: Int64?

    var isEmpty: Bool { waiting.isEmpty && inFlight == nil }
    var isReady: Bool { !waiting.isEmpty && inFlight == nil && notBefore == nil }
}

/// A notification without an outcome.
struct QueuedPush {
    var push: Push
    /// The server to send it to.
    var server: ServerName
    /// The reason for the other environment's refusal, if it was sent there first. It is never sent there again.
    var firstRefusal: String?
    /// The number of times that APNs put it off.
    var postponed = 0
    /// The number of times that it came back unprocessed.
    var unseen = 0
    /// The number of times that it left and was not answered.
    var lost = 0
    /// The number of times that its provider token was found too old, or its connection wrong.
    var rejected = 0

    init(_ push: Push, to server: ServerName? = nil) {
        self.push = push
        self.server = server ?? ServerName(push.target)
    }
}
