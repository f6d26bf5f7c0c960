import CPostgres
import Dispatch
import Logging
import Synchronization

/// Statements that timed out or lost their caller: each is cancelled, and its backend counted until the backend is known to
/// be gone.
///
/// Closing a connection does not stop its backend, which notices only when it writes its result. So the caller that gives
/// up first sends a cancel request (PQcancel, libpq's documentation, section 34.7). The request takes a connection of its
/// own and may block, so it runs on a separate queue. Some loops in Postgres never check for interrupts (LIKE on a long
/// text), so a backend may run on all the same. While too many do, no new sessions are opened to compute what clients ask
/// for: Postgres would run out of connections.
///
/// One instance per process; safe to call from any thread.
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

    /// This many backends may still run; at the limit no new session is opened.
    static let mostRunning = 4
    /// Older entries have ended long ago, or are covered by the count.
    private static let mostRemembered = 1000
    /// Limit of concurrent requests; to a frozen server each of them hangs.
    private static let mostRequests = 8
    private let content = Mutex(Content())
    private let queue = DispatchQueue(label: "roost-cancel", attributes: .concurrent)

    /// Number of statements abandoned since the process began.
    package var total: Int { content.withLock { $0.total } }

    /// Cancels the statement that `connection` is running, and remembers its backend. Does not wait.
    ///
    /// - Parameters:
    ///   - server: identifies the server, as `serverName` does.
    ///   - level: the log level; a result that is no longer wanted deserves no warning.
    func abandonStatement(_ connection: OpaquePointer, of server: String, logger: Logger, level: Logger.Level) {
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
            request.sendCancel()
            self.requestEnded()
        }
    }

    private func requestEnded() { content.withLock { $0.requests -= 1 } }

    /// Finds out which backends are gone, with a query on a connection that has just been opened.
    ///
    /// - Throws: `PostgresError` of kind `connection` if too many still run.
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

/// libpq's handle for a cancel request.
private final class CancelRequest: @unchecked Sendable {
    // Created on one thread and handed to one other, the only one to use it; libpq shares no part of it with the
    // connection.
    private let handle: OpaquePointer

    init(_ handle: OpaquePointer) { self.handle = handle }

    deinit { PQfreeCancel(handle) }

    func sendCancel() {
        var message = [CChar](repeating: 0, count: 256)
        // Success is judged by looking for the backend, not by this result.
        _ = PQcancel(handle, &message, Int32(message.count))
    }
}
