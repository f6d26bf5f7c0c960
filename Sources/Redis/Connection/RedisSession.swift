import Glibc
import Workers

/// A connection that waits for its replies, for commands that inspect a server once, and for tests. It blocks the
/// calling thread, and is confined to it.
package final class RedisSession {
    private let side: LinkSide
    private let lookup = HostLookup()
    private let limit: Duration
    private var replies: [RedisValue] = []

    /// Connects.
    ///
    /// - Parameter limit: for connecting, and for each reply.
    /// - Throws: `RedisFailure` if the first attempt fails.
    package init(
        _ address: RedisAddress, name: String, timeouts: RedisTimeouts = RedisTimeouts(),
        limit: Duration = .seconds(10)
    ) throws(RedisFailure) {
        self.limit = limit
        side = LinkSide(address, RedisGreeting(name: name), timeouts, lookup, random: { 0 }, at: .now)
        try pollConnection { side.isReady }
    }

    package var server: RedisServerIdentity { side.server }

    /// The location of the server; with Sentinel, the server that it named.
    package var place: RedisAddress.Place? { side.place?.0 }

    /// Sends a command and waits for the reply, which may be a server error.
    ///
    /// An error can end the connection; the next command then makes a new one.
    ///
    /// - Throws: `RedisFailure` if there is no reply.
    package func runCommand(_ command: RedisArgument...) throws(RedisFailure) -> RedisValue { try runCommand(command) }

    package func runCommand(_ command: [RedisArgument]) throws(RedisFailure) -> RedisValue {
        replies = []
        if !side.isReady { try pollConnection { side.isReady } }
        guard side.sendCommand(command, .command(0), at: .now) else {
            throw RedisFailure(.cut, "there is no connection")
        }
        try pollConnection { !replies.isEmpty }
        return replies.removeFirst()
    }

    private func pollConnection(until isDone: () -> Bool) throws(RedisFailure) {
        let deadline = ContinuousClock.now + limit
        while true {
            var events: [LinkSide.Event] = []
            lookup.clearSignal()
            side.makeProgress(at: .now, into: &events)
            for event in events {
                switch event {
                case .reply(.command, let value): replies.append(value)
                // An error that ends its connection is still a reply.
                case .failed(let failure, _) where replies.isEmpty: throw failure
                default: break
                }
            }
            if isDone() { return }
            guard ContinuousClock.now < deadline else {
                throw RedisFailure(.unanswered, "Redis does not answer in time")
            }
            guard let connection = side.connection else { continue }
            connection.flush()
            var polled = [
                pollfd(
                    fd: connection.descriptor ?? lookup.descriptor,
                    events: connection.descriptor == nil ? Int16(POLLIN) : connection.events, revents: 0)
            ]
            poll(&polled, 1, milliseconds(until: min(deadline, connection.deadline ?? deadline)))
        }
    }
}
