import Logging
import Postgres
import Synchronization

/// What was read at start-up, on its way from the thread that reads it.
final class PresenceOutcome: Sendable {
    private let result = Mutex<Result<PresenceRestored, any Error>?>(nil)

    func set(_ outcome: Result<PresenceRestored, any Error>) { result.withLock { $0 = outcome } }

    /// Nobody, where it failed or took too long.
    func restored(logger: Logger) -> PresenceRestored {
        let reason: String
        switch result.withLock({ $0 }) {
        case .success(let restored): return restored
        case .failure(let error as PostgresError) where error.kind == .server && error.sqlState == nil:
            // `roost migrate` has not run, so there is nothing to be lost; the feed says what to do.
            logger.debug("No presences are restored: \(error)")
            return PresenceRestored()
        case .failure(let error): reason = "\(error)"
        case nil: reason = "The database's host did not answer in time."
        }
        logger.warning("Presences from before the restart are lost, as the database cannot be read: \(reason)")
        return PresenceRestored()
    }
}
