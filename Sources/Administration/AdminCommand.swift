import Glibc
package import Postgres
import Schema
import Workers

/// Waits for Postgres' answers, and reports the command's progress meanwhile.
///
/// Once a wait takes longer than a moment, another session asks Postgres for its cause.
final class ProgressWaiter: SocketWaiter {
    private let conninfo: String
    private let listener: AdminProgress.Listener
    private let waiter = PlainWaiter()
    private var observer: PostgresConnection?
    /// Set when no other session can be opened: only the wait itself is reported then.
    private var isBlind = false
    private var lookAt = ContinuousClock.now + ProgressWaiter.rhythm
    /// The session whose answers are awaited.
    var backendID: Int32?
    private(set) var progress: AdminProgress
    /// The last known holder of a lock that the session waits for.
    private(set) var holder: LockHolder?

    private static let rhythm = Duration.milliseconds(500)
    private static let observerLimit = Duration.seconds(2)

    init(_ task: String, conninfo: String, listener: @escaping AdminProgress.Listener) {
        progress = AdminProgress(task)
        self.conninfo = conninfo
        self.listener = listener
    }

    func reportProgress(_ change: (inout AdminProgress) -> Void) {
        change(&progress)
        listener(progress)
    }

    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            let slice = min(deadline, max(lookAt, ContinuousClock.now + .milliseconds(1)))
            do {
                return try waiter.wait(for: descriptor, events: events, until: slice)
            } catch let error as PostgresError where error.kind == .timeout {
                if ContinuousClock.now >= deadline { throw error }
            }
            reportWait()
        }
    }

    /// Pauses, and keeps reporting progress.
    func pause(_ duration: Duration) {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            var none: [pollfd] = []
            _ = poll(&none, 0, milliseconds(until: min(end, ContinuousClock.now + Self.rhythm)))
            listener(progress)
        }
    }

    private func reportWait() {
        let detail = describeWait()
        reportProgress { $0.detail = detail }
        lookAt = .now + Self.rhythm
    }

    private func describeWait() -> String? {
        guard let backendID, !isBlind else { return nil }
        do {
            let session = try observer ?? AdminSession.openConnection(conninfo, within: Self.observerLimit)
            observer = session
            let rows = try session.query(LockSQL.sessionWait, [String(backendID)], within: Self.observerLimit)
            if let holder = LockHolder(rows) {
                self.holder = holder
                return "waits for a lock held by \(holder.description)"
            }
            return rows.count > 0 ? rows.text(0, 4) : nil
        } catch {
            // The command itself goes on, and reports its own errors.
            isBlind = true
            return nil
        }
    }
}

/// The progress of a command.
package struct AdminProgress: Sendable, Equatable {
    /// The task: `watching public.messages`.
    package var task: String
    /// Steps done, if there are several.
    package var done = 0
    package var total = 0
    /// The current wait, or the state of the current statement.
    package var detail: String?

    package init(_ task: String) { self.task = task }

    /// Receives progress now and then, on the command's thread.
    package typealias Listener = (AdminProgress) -> Void
}

enum AdminSession {
    /// Opens a connection for a command.
    ///
    /// - Parameters:
    ///   - reporter: waits for the answers.
    ///   - limit: the time to connect, per host.
    static func openConnection(
        _ conninfo: String, reporter: ProgressWaiter? = nil, within limit: Duration = .seconds(10)
    ) throws -> PostgresConnection {
        let connection = try PostgresConnection(conninfo, waiter: reporter ?? PlainWaiter(), within: limit)
        reporter?.backendID = connection.backendID
        return connection
    }

    /// Opens a connection to a database that has this binary's schema.
    ///
    /// - Throws: also `AdminError` with the command to run.
    static func openMigrated(_ conninfo: String, reporter: ProgressWaiter? = nil) throws -> PostgresConnection {
        let connection = try openConnection(conninfo, reporter: reporter)
        do {
            try RoostSchema.demandCurrent(on: connection)
        } catch let error as PostgresError where error.sqlState == nil && error.kind == .server {
            throw AdminError(error.message)
        }
        return connection
    }
}

/// A command that failed; the description is the sentence to print.
package struct AdminError: Error, Sendable, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

/// Runs a command's body, and turns errors of libpq or Postgres into a sentence that names the task.
func runCommand<Outcome>(_ task: String, _ body: () throws -> Outcome) throws -> Outcome {
    do {
        return try body()
    } catch let error as PostgresError {
        if error.isOfPooler { throw AdminError("Cannot \(task): \(error.message).") }
        switch error.sqlState {
        case SQLState.insufficientPrivilege:
            throw AdminError("Cannot \(task): \(error.message); run it as the owner, or have the right granted.")
        case nil:
            throw AdminError("Cannot \(task): \(error.connectionSentence)")
        default:
            throw AdminError("Cannot \(task): \(error.message).")
        }
    }
}

/// All statement files of this room, for the test that checks their names.
package enum AdministrationSQL {
    package static let files: [any NamedStatement.Type] = [
        DoctorSQL.self, CaptureDoctorSQL.self, ClientRolesSQL.self, WatchingSQL.self, PublishingSQL.self, LockSQL.self,
    ]
}
