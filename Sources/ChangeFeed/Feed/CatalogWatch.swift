import Logging
import Wire

/// Keeps the catalog current, and tells the consumer where it changed. One for each connection of the feed.
final class CatalogWatch {
    private let environment: FeedEnvironment
    /// When a window is to bring the catalog's version along.
    var dueAt: ContinuousClock.Instant
    /// The statement that found the catalog current was sent then: what was committed before is in it.
    private(set) var asOf: ContinuousClock.Instant
    /// How a window asks for the catalog's version, in SQL.
    private(set) var version = CatalogReader.versionQuestion
    /// No row is judged by a catalog that was last found current longer ago, so what is revoked counts for all that is committed
    /// this much later, on a machine that stands still as well (`WindowReader`).
    static let longestAge = Duration.seconds(1)
    /// The least time between two looks. Where nothing comes, and nobody rings where triggers are off, each safety poll is one
    /// (`Doorbell.Rhythm.safety`).
    static let interval = Duration.milliseconds(500)

    init(_ environment: FeedEnvironment, at now: ContinuousClock.Instant) {
        self.environment = environment
        dueAt = now
        asOf = now
    }

    /// Reads the catalog for the first time on this connection.
    func begin() throws {
        let (state, logger) = (environment.state, environment.logger)
        version = try CatalogReader.compileVersion(on: environment.reader)
        try noteInterruptions()
        _ = try environment.reader.query(CatalogSQL.refreshTextNeeds)
        let began = ContinuousClock.now
        let catalog = try CatalogReader.read(
            from: environment.reader, roles: state.tables.roles, readsWAL: environment.configuration.readsWAL)
        state.tables.adopt(catalog.keeping(state.tables.catalog), logger: logger)
        state.statistics.faultyTables = catalog.faults.count
        state.tables.mayHaveChanged()
        isCurrent(asOf: began)
    }

    /// - Parameter roles: whose access it is to tell, besides those it told of before.
    func refresh(knowing roles: Set<Name> = []) throws {
        let state = environment.state
        let old = state.tables.catalog
        try noteInterruptions()
        _ = try environment.reader.query(CatalogSQL.refreshTextNeeds)
        let began = ContinuousClock.now
        let fresh = try CatalogReader.read(
            from: environment.reader, roles: state.tables.roles.union(roles),
            readsWAL: environment.configuration.readsWAL
        ).keeping(old)
        state.tables.roles = fresh.knownRoles
        isCurrent(asOf: began)
        state.statistics.faultyTables = fresh.faults.count
        guard !fresh.isSame(as: old) else { return }
        state.tables.adopt(fresh, logger: environment.logger)
        environment.consumer.catalogChanged(fresh)
    }

    /// A window brought the version along, and it was the catalog's.
    func isCurrent(asOf began: ContinuousClock.Instant) {
        asOf = began
        dueAt = began + Self.interval
    }

    /// What captures a table is not what it was. It may have been put right already; what was written in between is missing,
    /// and this says so for all hubs (Migration016Watched.sql): the next look at the outbox finds it (`LossDetector`).
    private func noteInterruptions() throws {
        let rows = try environment.reader.query(CatalogSQL.noteCaptures)
        guard rows.count > 0 else { return }
        let names = (0..<rows.count).compactMap { rows.text($0, 0) }.joined(separator: ", ")
        environment.state.statistics.interruptions += rows.count
        environment.logger.warning(
            """
            The capture of changes was interrupted (\(names)): its triggers, its place in the publication roost or the table \
            itself were changed other than by `roost watch`, so changes may be missing. Clients connected for row changes are \
            told to load their data again; `roost doctor` says what is wrong still.
            """)
    }
}
