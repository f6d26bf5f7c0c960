import Logging

/// Keeps the catalog current, and tells the consumer where it changed. One for each connection of the feed.
final class CatalogWatch {
    private let environment: FeedEnvironment
    /// When a window is to bring the catalog's version along. What is revoked counts within this time, so well within a
    /// second.
    var dueAt: ContinuousClock.Instant
    static let interval = Duration.milliseconds(500)

    init(_ environment: FeedEnvironment, at now: ContinuousClock.Instant) {
        self.environment = environment
        dueAt = now
    }

    /// Reads the catalog for the first time on this connection.
    func begin() throws {
        let (state, logger) = (environment.state, environment.logger)
        let catalog = try CatalogReader.read(
            from: environment.reader, roles: state.tables.roles, readsWAL: environment.configuration.readsWAL)
        state.tables.adopt(catalog.keeping(state.tables.catalog), logger: logger)
        state.tables.mayHaveChanged()
    }

    /// - Parameter roles: whose access it is to tell, besides those it told of before.
    func refresh(knowing roles: Set<String> = []) throws {
        let state = environment.state
        let old = state.tables.catalog
        let fresh = try CatalogReader.read(
            from: environment.reader, roles: state.tables.roles.union(roles),
            readsWAL: environment.configuration.readsWAL
        ).keeping(old)
        state.tables.roles = fresh.knownRoles
        dueAt = .now + Self.interval
        guard !fresh.isSame(as: old) else { return }
        state.tables.adopt(fresh, logger: environment.logger)
        environment.consumer.catalogChanged(fresh)
    }

    /// A window brought the version along, and it was the catalog's.
    func isCurrent() { dueAt = .now + Self.interval }
}
