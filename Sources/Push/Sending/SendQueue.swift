import DequeModule
import Hub
import Wire

/// The notifications that wait to be sent, and those that are in flight.
///
/// Invariants
///   - Each notification that is added ends in `finished` exactly once.
///   - Of one lane at most one is in flight, and they leave in the order in which they were added.
///   - It never holds more than `capacity`. When it is full, those whose deadline has passed leave; then newcomers are
///     refused, because those that wait are older and their users have been waiting longer. One that replaces another
///     of its lane takes that one's place, so the latest state gets in however full it is.
struct SendQueue {
    typealias Ticket = UInt64

    let capacity: Int
    var finished: [(Push, PushOutcome)] = []
    var inFlight = 0

    var entries: [Ticket: QueuedPush] = [:]
    var lanes: [Name: Lane] = [:]
    /// Lanes that may have a notification to send, by server. An entry that is out of date is skipped.
    var ready: [ServerName: Deque<Name>] = [:]
    /// Lanes that are kept back, in monotonic milliseconds.
    var delayed = TimerQueue<Name>()
    /// When notifications that wait are out of date, in milliseconds since 1970.
    var deadlines = TimerQueue<Ticket>()
    private var lastTicket: Ticket = 0

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { entries.count }
    var waiting: Int { entries.count - inFlight }

    mutating func takeFinished() -> [(Push, PushOutcome)] {
        defer { finished = [] }
        return finished
    }

    /// - Parameter server: where it is to be sent; nil for the server of its target.
    mutating func add(_ push: Push, to server: ServerName? = nil, at now: HubTime) {
        if push.deadline <= now.unix { return finished.append((push, .expired)) }
        if push.replaces { supersede(push.lane) }
        if entries.count >= capacity { expire(at: now) }
        if entries.count >= capacity { return finished.append((push, .overflow)) }
        lastTicket += 1
        entries[lastTicket] = QueuedPush(push, to: server)
        deadlines.set(lastTicket, at: push.deadline)
        lanes[push.lane, default: Lane()].waiting.append(lastTicket)
        list(push.lane)
        compact()
    }

    /// Takes the next notification for a server; it counts as in flight from here on.
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

    /// Notes which environment the token of a notification belongs to, so that those behind it are sent there at once.
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
        deadlines.forget(ticket)
        finished.append((entry.push, outcome))
        list(entry.push.lane)
    }

    /// Puts a notification that was in flight back into the queue, before the others of its lane.
    ///
    /// - Parameters:
    ///   - time: when it may leave again, in monotonic milliseconds; nil for at once.
    ///   - change: notes in the entry why.
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

    /// Ends what is past its deadline, and lists the lanes whose delay is over.
    mutating func advance(to now: HubTime) {
        expire(at: now)
        while let name = delayed.take(at: now.monotonic) {
            lanes[name]?.notBefore = nil
            list(name)
        }
    }

    /// When `advance` has something to do, in monotonic milliseconds.
    func nextDue(at now: HubTime) -> Int64? {
        let deadline = deadlines.next.map { $0 - now.unix + now.monotonic }
        return [deadline, delayed.next].compactMap { $0 }.min()
    }

    /// Ends all that is not in flight.
    mutating func finishWaiting(_ outcome: PushOutcome) {
        for lane in lanes.values {
            for ticket in lane.waiting { remove(ticket, outcome) }
        }
    }
}

extension SendQueue {
    /// Lists a lane under the server of its first notification, if that may be sent.
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
        delayed.forget(name)
    }

    /// Keeps a lane back until `time`, in monotonic milliseconds.
    mutating func delay(_ name: Name, until time: Int64?) {
        guard let time else { return list(name) }
        lanes[name]?.notBefore = time
        delayed.set(name, at: time)
    }

    /// A notification is no longer in flight.
    ///
    /// - Returns: its entry; nil where it was not in flight.
    mutating func land(_ ticket: Ticket) -> QueuedPush? {
        guard let entry = entries[ticket], lanes[entry.push.lane]?.inFlight == ticket else { return nil }
        lanes[entry.push.lane]?.inFlight = nil
        inFlight -= 1
        return entry
    }

    /// Ends a notification that waits.
    mutating func remove(_ ticket: Ticket, _ outcome: PushOutcome) {
        guard let entry = entries.removeValue(forKey: ticket) else { return }
        deadlines.forget(ticket)
        let name = entry.push.lane
        if let index = lanes[name]?.waiting.firstIndex(of: ticket) { lanes[name]?.waiting.remove(at: index) }
        finished.append((entry.push, outcome))
        if lanes[name]?.isEmpty == true { discard(name) }
    }

    /// Ends a notification that waits, and lets the next one of its lane go.
    mutating func end(_ ticket: Ticket, _ outcome: PushOutcome) {
        guard let lane = entries[ticket]?.push.lane else { return }
        remove(ticket, outcome)
        list(lane)
    }

    /// Ends all of a lane that wait.
    mutating func supersede(_ name: Name) {
        for ticket in lanes[name]?.waiting ?? [] { remove(ticket, .superseded) }
    }

    /// Ends what waits and is past its deadline.
    mutating func expire(at now: HubTime) {
        while let ticket = deadlines.take(at: now.unix) {
            // One that is in flight is looked at when it comes back.
            guard let entry = entries[ticket], lanes[entry.push.lane]?.inFlight != ticket else { continue }
            remove(ticket, .expired)
            list(entry.push.lane)
        }
    }

    /// Drops entries of the lists that are out of date, once they are the greater part, so that what an hour of newcomers
    /// leaves behind while nothing can be sent is bounded.
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

/// Notifications that go out one after the other.
struct Lane {
    var waiting: Deque<SendQueue.Ticket> = []
    /// The notification that is in flight.
    var inFlight: SendQueue.Ticket?
    /// When the lane may send again, in monotonic milliseconds; nil for at once.
    var notBefore: Int64?

    var isEmpty: Bool { waiting.isEmpty && inFlight == nil }
    var isReady: Bool { !waiting.isEmpty && inFlight == nil && notBefore == nil }
}

/// A notification that has no outcome yet.
struct QueuedPush {
    var push: Push
    /// Where it is to be sent.
    var server: ServerName
    /// Why the other environment refused it, if it was sent there first. It is never sent there again.
    var firstRefusal: String?
    /// How often APNs put it off.
    var postponed = 0
    /// How often it came back without having been looked at.
    var unseen = 0
    /// How often it left and was not answered.
    var lost = 0
    /// How often its provider token was found too old, or its connection wrong.
    var rejected = 0

    init(_ push: Push, to server: ServerName? = nil) {
        self.push = push
        self.server = server ?? ServerName(push.target)
    }
}
