import DequeModule
import HeapModule
import Hub

extension SendQueue {
    /// Notes that the lane's head, if it may go, is one for its server.
    mutating func list(_ name: String) {
        guard let lane = lanes[name] else { return }
        if lane.isEmpty {
            lanes[name] = nil
        } else if lane.isReady, let ticket = lane.waiting.first, let server = entries[ticket]?.server {
            ready[server, default: []].append(name)
        }
    }

    mutating func delay(_ name: String, until time: Int64?) {
        guard let time else { return list(name) }
        lanes[name]?.notBefore = time
        delayed.insert(Due(time: time, subject: name))
    }

    /// It is no longer on its way. Nil where it was not.
    mutating func land(_ ticket: Ticket) -> QueuedPush? {
        guard let entry = entries[ticket], lanes[entry.push.lane]?.flying == ticket else { return nil }
        lanes[entry.push.lane]?.flying = nil
        flying -= 1
        return entry
    }

    /// Ends one that waits.
    mutating func remove(_ ticket: Ticket, _ outcome: PushOutcome) {
        guard let entry = entries.removeValue(forKey: ticket) else { return }
        let name = entry.push.lane
        if let index = lanes[name]?.waiting.firstIndex(of: ticket) { lanes[name]?.waiting.remove(at: index) }
        finished.append((entry.push, outcome))
        if lanes[name]?.isEmpty == true { lanes[name] = nil }
    }

    mutating func supersede(_ name: String) {
        for ticket in lanes[name]?.waiting ?? [] { remove(ticket, .superseded) }
    }

    mutating func expire(at now: HubTime) {
        while let due = deadlines.min, due.time <= now.unix {
            deadlines.removeMin()
            // One that is on its way is looked at when it comes back.
            guard let entry = entries[due.subject], lanes[entry.push.lane]?.flying != due.subject else { continue }
            remove(due.subject, .expired)
            list(entry.push.lane)
        }
    }

    /// Forgets what stands for nothing any more, once that is the greater part: what an hour of newcomers leaves behind
    /// while nothing can be sent is bounded, too.
    mutating func compact() {
        let slack = 64
        if deadlines.count > 2 * entries.count + slack {
            deadlines = Heap(deadlines.unordered.filter { entries[$0.subject] != nil })
        }
        if delayed.count > 2 * lanes.count + slack {
            delayed = Heap(delayed.unordered.filter { lanes[$0.subject]?.notBefore == $0.time })
        }
        for (server, names) in ready where names.count > 2 * lanes.count + slack {
            var seen: Set<String> = []
            ready[server] = Deque(
                names.filter { name in
                    guard let lane = lanes[name], lane.isReady, let ticket = lane.waiting.first else { return false }
                    return entries[ticket]?.server == server && seen.insert(name).inserted
                })
        }
    }
}
