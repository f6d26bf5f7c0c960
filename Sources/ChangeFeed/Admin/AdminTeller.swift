import Glibc
import Postgres

/// Waits for Postgres' answers, and tells meanwhile how far the command has come.
///
/// What the waiting is for is asked of Postgres by another session, once it takes longer than a moment.
final class AdminTeller: SocketWaiter {
    private let conninfo: String
    private let listener: AdminProgress.Listener
    private let waiter = PlainWaiter()
    private var observer: PostgresConnection?
    /// There was no other session to be had; so it is told only that there is waiting.
    private var isBlind = false
    private var lookAt = ContinuousClock.now + AdminTeller.rhythm
    /// The session that is waited for.
    var backendID: Int32?
    private(set) var progress: AdminProgress

    private static let rhythm = Duration.milliseconds(500)
    private static let observerLimit = Duration.seconds(2)

    init(_ task: String, conninfo: String, listener: @escaping AdminProgress.Listener) {
        progress = AdminProgress(task)
        self.conninfo = conninfo
        self.listener = listener
    }

    func tell(_ change: (inout AdminProgress) -> Void) {
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
            look()
        }
    }

    /// Lets time go by, as far as somebody is to be told.
    func pause(_ duration: Duration) {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            var none: [pollfd] = []
            _ = poll(&none, 0, milliseconds(until: min(end, ContinuousClock.now + Self.rhythm)))
            listener(progress)
        }
    }

    private func look() {
        let detail = observed()
        tell { $0.detail = detail }
        lookAt = .now + Self.rhythm
    }

    private func observed() -> String? {
        guard let backendID, !isBlind else { return nil }
        do {
            let session = try observer ?? AdminSession.open(conninfo, within: Self.observerLimit)
            observer = session
            let rows = try session.query(SQL.sessionWait, [String(backendID)], within: Self.observerLimit)
            if let holder = LockHolder(rows) { return "waits for a lock of \(holder.description)" }
            return rows.count > 0 ? rows.text(0, 4) : nil
        } catch {
            // The command itself goes on; what it meets it says itself.
            isBlind = true
            return nil
        }
    }
}
