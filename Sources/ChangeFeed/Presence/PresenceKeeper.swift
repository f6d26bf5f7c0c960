package import Hub
package import Logging
import Postgres
import Synchronization

/// Keeps the database told of who is present in channels (`roost.presence`), so that a hub that starts again knows it, and
/// tells the application of users who come online and go, by the statement it has configured.
///
/// It has one thread and one connection of its own, and no part of the hub ever waits for it. It writes about once a second
/// what changed, and sends nothing where nothing did. While the database is away, what is to be written is kept: the newest
/// word on each presence and user, so no more than there are of them.
package final class PresenceKeeper: Sendable {
    private let setup: PresenceSetup
    private let signal = PresenceSignal()
    private let published = PresencePublished()
    private let thread = Mutex<FeedThread?>(nil)

    /// - Parameters:
    ///   - node: the hub's name across restarts.
    ///   - log: what is written to `roost.presence`.
    ///   - users: who comes online and goes; what nobody is to be told of is thrown away.
    ///   - statement: SQL with the parameters `$1::text[]`, the users, `$2::boolean[]`, whether they are online, and
    ///     `$3::timestamptz[]`, when they came or were last seen; nil where the application is told nothing.
    ///   - leftOnline: called on the keeper's thread with users whom the application was told to be online, long ago or
    ///     by another process, who are not: for those that `restore` could not read. As `PresenceRestored.users`.
    package init(
        conninfo: String, node: String, log: PresenceLog, users: UserPresence?, statement: String?, logger: Logger,
        rhythm: PresenceRhythm = PresenceRhythm(),
        leftOnline: @escaping @Sendable ([(user: String, seen: Int64)]) -> Void = { _ in }
    ) {
        setup = PresenceSetup(
            conninfo: conninfo, node: node, log: log, users: users, statement: statement, logger: logger,
            rhythm: rhythm,
            leftOnline: leftOnline)
    }

    /// Reads whom the last process of this node served. To be called before the hub listens, and before `start`; it takes
    /// no longer than `rhythm.restoring`, and where it fails, says so in the log and returns nobody.
    package func restore() -> PresenceRestored {
        let setup = setup
        let signal = PresenceSignal()
        let outcome = PresenceOutcome()
        let deadline = ContinuousClock.now + setup.rhythm.restoring
        signal.stop(within: setup.rhythm.restoring)
        // The look-up of a host's name has no deadline in libpq, so the thread may have to be left behind.
        let reader = FeedThread(named: "roost-restore") {
            outcome.set(
                Result {
                    // So that the second of two hosts has its turn, too.
                    let connection = try PresenceSession.open(
                        setup.conninfo, waiter: PresenceWaiter(signal: signal), logger: setup.logger,
                        within: setup.rhythm.restoring / 2)
                    var restored = PresenceRestored()
                    restored.presences = try PresenceSession.presences(of: setup.node, on: connection)
                    if setup.users != nil, setup.statement != nil {
                        restored.users = try PresenceSession.onlineUsers(of: setup.node, on: connection)
                    }
                    return restored
                })
            signal.noteEnd()
        }
        if signal.hasEnded(by: deadline + .milliseconds(100)) { reader.join() }
        return outcome.restored(logger: setup.logger)
    }

    /// Starts the thread; it connects, and keeps trying. Once in the life of a keeper.
    package func start() {
        let (setup, signal, published) = (setup, signal, published)
        thread.withLock { thread in
            guard thread == nil else { return }
            thread = FeedThread(named: "roost-presence") {
                var loop = PresenceLoop(setup, signal, published)
                loop.run()
            }
        }
    }

    /// Writes what waits and ends the thread. One that hangs is left behind after `rhythm.stopping`: whoever stops a
    /// keeper is about to end the process.
    package func stop() {
        signal.stop(within: setup.rhythm.stopping)
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        let deadline = ContinuousClock.now + setup.rhythm.stopping + .milliseconds(100)
        if let running, signal.hasEnded(by: deadline) { running.join() }
    }

    /// From any thread; a beat old.
    package var statistics: PresenceStatistics { published.statistics }

    /// The statement for the sample chat, whose users have a `status` and a `last_seen`.
    package static var statementOfSampleChat: String { SQL.statusOfChatUsers }
}
