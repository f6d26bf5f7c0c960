package import Hub
import Synchronization
package import Wire

/// What an operator may ask. A question is posted to the loops, and answered on the thread of the one that answers last.
extension Gateway {
    package func busiestChannels(limit: Int, then reply: @escaping @Sendable ([ChannelLoad]) -> Void) {
        // A channel that is spread over the loops may be no loop's busiest.
        survey({ $0.hub.busiestChannels(limit: 4 * limit) }) {
            reply(ChannelLoad.mergeLoads($0.flatMap { $0 }, limit: limit))
        }
    }

    package func slowReaders(limit: Int, then reply: @escaping @Sendable ([SocketView]) -> Void) {
        survey({ $0.slowReaders(limit: limit) }) { parts in
            let all = parts.flatMap { $0 }.sorted { $0.pendingBytes > $1.pendingBytes }
            reply(Array(all.prefix(limit)))
        }
    }

    package func newestSockets(limit: Int, then reply: @escaping @Sendable ([SocketView]) -> Void) {
        survey({ $0.newestSockets(limit: limit) }) { parts in
            let all = parts.flatMap { $0 }.sorted { $0.seconds < $1.seconds }
            reply(Array(all.prefix(limit)))
        }
    }

    package func sockets(ofUser user: Name, limit: Int, then reply: @escaping @Sendable ([SocketView]) -> Void) {
        survey({ $0.sockets(ofUser: user, limit: limit) }) { reply($0.flatMap { $0 }) }
    }

    package func channel(
        _ topic: String, limit: Int, then reply: @escaping @Sendable ([ChannelReport]) -> Void
    ) {
        survey({ $0.reports(onChannel: topic, limit: limit) }) { reply($0.flatMap { $0 }) }
    }

    /// Nil where the connection is gone.
    package func connection(_ id: ConnectionID, then reply: @escaping @Sendable (ConnectionReport?) -> Void) {
        guard inboxes.indices.contains(id.loop) else { return reply(nil) }
        inboxes[id.loop].post(.inspect { reply($0.report(on: id)) })
    }

    /// Closes a connection in a way that makes its client come back. The answer is whether it was there.
    package func disconnect(_ id: ConnectionID, then reply: @escaping @Sendable (Bool) -> Void) {
        guard inboxes.indices.contains(id.loop) else { return reply(false) }
        inboxes[id.loop].post(.inspect { reply($0.disconnect(id)) })
    }

    /// The same for all connections of a user, by the claim `sub`. The answer is how many there were.
    package func disconnect(user: Name, then reply: @escaping @Sendable (Int) -> Void) {
        survey({ $0.disconnect(user: user) }) { reply($0.reduce(0, +)) }
    }

    /// Waits until the loops have done what had reached them before the call: bytes that lay in their sockets, what other
    /// threads had posted, and what the loops told each other because of it.
    ///
    /// In a round each loop answers in a turn of its own. Two rounds after the call every socket that was readable has been
    /// read, and each further one carries what a loop posted to its siblings at the end of its turn.
    ///
    /// - Parameter done: is told on a loop's thread: false where one of them still has row changes or frames to pass on, which
    ///   may wait for slow readers.
    package func awaitQuiet(rounds: Int = 6, then done: @escaping @Sendable (Bool) -> Void) {
        survey({ $0.changes.isEmpty && !$0.delivery.hasWork }) { [self] areQuiet in
            guard rounds > 1, areQuiet.allSatisfy(\.self) else { return done(areQuiet.allSatisfy(\.self)) }
            awaitQuiet(rounds: rounds - 1, then: done)
        }
    }

    /// The figures of all loops are those of now, and not of the last second.
    package func publishFigures(then done: @escaping @Sendable () -> Void) {
        survey({ $0.gauges.publish($0) }) { _ in done() }
    }

    func survey<Part: Sendable>(
        _ question: @escaping @Sendable (EventLoop) -> Part, then reply: @escaping @Sendable ([Part]) -> Void
    ) {
        let collector = AnswerCollector<Part>(count: inboxes.count, whenComplete: reply)
        for inbox in inboxes { inbox.post(.inspect { collector.add(question($0)) }) }
    }
}

/// Gathers what the loops answer to one question, and passes it on when the last of them has.
package final class AnswerCollector<Part: Sendable>: Sendable {
    private let state: Mutex<(parts: [Part], missing: Int)>
    private let whenComplete: @Sendable ([Part]) -> Void

    /// - Parameter whenComplete: called once, on the thread of whoever answers last.
    package init(count: Int, whenComplete: @escaping @Sendable ([Part]) -> Void) {
        state = Mutex((parts: [], missing: count))
        self.whenComplete = whenComplete
    }

    package func add(_ part: Part) {
        let all = state.withLock { state -> [Part]? in
            state.parts.append(part)
            state.missing -= 1
            return state.missing == 0 ? state.parts : nil
        }
        if let all { whenComplete(all) }
    }
}
