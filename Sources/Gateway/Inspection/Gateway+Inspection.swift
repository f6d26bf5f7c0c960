package import Hub
import Synchronization
package import Wire

/// An operator's queries. A query is posted to the loops, and the reply runs on the thread of the last loop to answer.
extension Gateway {
    package func busiestChannels(limit: Int, then reply: @escaping @Sendable ([ChannelLoad]) -> Void) {
        // A channel that is spread over the loops may be among the busiest of none of them.
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

    /// Replies nil if the connection is gone.
    package func connection(_ id: ConnectionID, then reply: @escaping @Sendable (ConnectionReport?) -> Void) {
        guard inboxes.indices.contains(id.loop) else { return reply(nil) }
        inboxes[id.loop].post(.inspect { reply($0.report(on: id)) })
    }

    /// Closes a connection in a way that makes its client reconnect. Replies whether the connection was open.
    package func disconnect(_ id: ConnectionID, then reply: @escaping @Sendable (Bool) -> Void) {
        guard inboxes.indices.contains(id.loop) else { return reply(false) }
        inboxes[id.loop].post(.inspect { reply($0.disconnect(id)) })
    }

    /// Like `disconnect(_:then:)`, for all connections of a user, by the claim `sub`. Replies with their number.
    package func disconnect(user: Name, then reply: @escaping @Sendable (Int) -> Void) {
        survey({ $0.disconnect(user: user) }) { reply($0.reduce(0, +)) }
    }

    /// Waits until the loops have handled everything that had reached them before the call: bytes in their sockets,
    /// tasks posted by other threads, and whatever the loops then posted to each other.
    ///
    /// In each round, every loop answers in a turn of its own. Two rounds after the call, every socket that was
    /// readable has been read; each further round covers what a loop posted to its siblings at the end of its turn.
    ///
    /// - Parameter done: called on a loop's thread, with false if a loop still has row changes or frames to pass on,
    ///   which may wait for slow readers.
    package func awaitQuiet(rounds: Int = 6, then done: @escaping @Sendable (Bool) -> Void) {
        survey({ $0.changes.isEmpty && !$0.delivery.hasWork }) { [self] areQuiet in
            guard rounds > 1, areQuiet.allSatisfy(\.self) else { return done(areQuiet.allSatisfy(\.self)) }
            awaitQuiet(rounds: rounds - 1, then: done)
        }
    }

    /// Publishes the current figures of all loops, instead of those of the last second.
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

/// Collects the loops' answers to one query, and passes them on when the last one arrives.
package final class AnswerCollector<Part: Sendable>: Sendable {
    private let state: Mutex<(parts: [Part], missing: Int)>
    private let whenComplete: @Sendable ([Part]) -> Void

    /// - Parameter whenComplete: called once, on the thread of the last answer.
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
