import CPostgres
import Dispatch
import Logging
import Synchronization

/// Statements that were not waited for any longer: each is cancelled, and its backend counted until it is known to be gone.
///
/// Closing a connection does not end what its backend computes: it notices when it writes its answer. So whoever gives up
/// sends a cancel request first (PQcancel, libpq's documentation, section 34.7), which takes a connection of its own and may
/// block; that is done on threads of its own. There are places in Postgres that look at no request (LIKE on a long text), so
/// that a backend may go on all the same. As long as too many do, sessions that compute what clients ask for are not opened:
/// Postgres' connections would run out.
///
/// One for the process; from any thread.
package final class AbandonedStatements: Sendable {
    package static let shared = AbandonedStatements()

    private struct Backend {
        let server: String
        let process: Int32
        let since: ContinuousClock.Instant
    }

    private struct Content {
        var backends: [Backend] = []
        var requests = 0
        var total = 0
    }

    /// Backends that may run on before no other is begun.
    static let mostRunning = 4
    /// Those before were ended long ago, or are counted by their number.
    private static let mostRemembered = 1000
    /// Requests under way at once; to a server that is frozen each of them hangs.
    private static let mostRequests = 8
    private let content = Mutex(Content())
    private let queue = DispatchQueue(label: "roost-cancel", attributes: .concurrent)

    /// How many there were since the process began.
    package var total: Int { content.withLock { $0.total } }

    /// Has the statement that `connection` runs cancelled, and remembers its backend. Does not wait.
    ///
    /// - Parameters:
    ///   - server: names the server among others, as `serverName` does.
    ///   - level: how it is logged; that nobody wants an answer any more is nothing to warn of.
    func abandon(_ connection: OpaquePointer, of server: String, logger: Logger, level: Logger.Level) {
        let process = PQbackendPID(connection)
        let mayAsk = content.withLock { content in
            content.total += 1
            if content.backends.count >= Self.mostRemembered { content.backends.removeFirst() }
            content.backends.append(Backend(server: server, process: process, since: .now))
            guard content.requests < Self.mostRequests else { return false }
            content.requests += 1
            return true
        }
        logger.log(level: level, "A statement took too long and was cancelled; its backend is \(process).")
        guard mayAsk else { return }
        guard let handle = PQgetCancel(connection) else { return requestEnded() }
        let request = CancelRequest(handle)
        queue.async {
            request.send()
            self.requestEnded()
        }
    }

    private func requestEnded() { content.withLock { $0.requests -= 1 } }

    /// Finds out which backends are gone, by asking on a connection that has just been opened.
    ///
    /// - Throws: `PostgresError` of kind `connection` where too many still run.
    package func demandFew(on connection: PostgresConnection) throws {
        let server = connection.serverName
        let known = content.withLock { $0.backends.filter { $0.server == server } }
        guard !known.isEmpty else { return }
        let now = ContinuousClock.now
        let result = try connection.query(
            SessionSQL.runningBackends,
            [
                "{" + known.map { "\($0.process)" }.joined(separator: ",") + "}",
                "{" + known.map { "\(($0.since.duration(to: now)).milliseconds)" }.joined(separator: ",") + "}",
            ], within: .seconds(2))
        let running = Set((0..<result.count).compactMap { result.integer($0, 0).map(Int32.init) })
        let left = content.withLock { content in
            content.backends.removeAll { backend in
                backend.server == server && known.contains { $0.process == backend.process }
                    && !running.contains(backend.process)
            }
            return content.backends.filter { $0.server == server }.map(\.process)
        }
        guard left.count >= Self.mostRunning else { return }
        throw PostgresError(
            .connection,
            "\(left.count) statements that were cancelled still run in Postgres (backends "
                + left.map(String.init).joined(separator: ", ")
                + "), so the hub sends no more statements until they end; if they do not, restart Postgres.")
    }
}

/// What libpq needs to send a cancel request.
private final class CancelRequest: @unchecked Sendable {
    // Made by one thread and handed to one other, which alone uses it; libpq shares nothing of it with the connection.
    private let handle: OpaquePointer

    init(_ handle: OpaquePointer) { self.handle = handle }

    deinit { PQfreeCancel(handle) }

    func send() {
        var message = [CChar](repeating: 0, count: 256)
        // Whether it was heard is found by looking for the backend.
        _ = PQcancel(handle, &message, Int32(message.count))
    }
}
