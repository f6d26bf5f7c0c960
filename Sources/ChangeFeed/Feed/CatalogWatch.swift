import Logging
import Wire

/// Keeps the catalog current, and tells the consumer when it changes. One for each connection of the feed.
final class CatalogWatch {
    private let environment: FeedEnvironment
    /// When a window should next include the catalog's version.
    var dueAt: ContinuousClock.Instant
    /// The time when the statement that found the catalog current was sent: the catalog includes all earlier commits.
    private(set) var asOf: ContinuousClock.Instant
    /// The SQL by which a window reads the catalog's version.
    private(set) var version = CatalogReader.versionQuestion
    /// Rows are never judged by a catalog last confirmed longer ago, so a revocation applies to everything committed this
    /// much later, even on a machine that stands still (`WindowReader`).
    static let longestAge = Duration.seconds(1)
    /// Minimum time between two checks. Without changes (with triggers off no writer rings), each safety poll is a check
    /// (`Doorbell.Rhythm.safety`).
    static let interval = Duration.milliseconds(500)

    init(_ environment: FeedEnvironment, at now: ContinuousClock.Instant) {
        self.environment = environment
        dueAt = now
        asOf = now
    }

    /// Reads the catalog for the first time on this connection.
    func loadCatalog() throws {
        let (state, logger) = (environment.state, environment.logger)
        version = try CatalogReader.compileVersion(on: environment.reader)
        try noteInterruptions()
        _ = try environment.reader.query(CatalogSQL.refreshTextNeeds)
        let began = ContinuousClock.now
        let catalog = try CatalogReader.readCatalog(
            from: environment.reader, roles: state.tables.roles, readsWAL: environment.configuration.readsWAL)
        state.tables.replaceCatalog(catalog.reusingTables(state.tables.catalog), logger: logger)
        state.statistics.faultyTables = catalog.faults.count
        state.tables.mayHaveChanged()
        confirmCurrent(asOf: began)
    }

    /// - Parameter roles: roles whose access the catalog must cover, in addition to those it already covers.
    func refreshCatalog(knowing roles: Set<Name> = []) throws {
        let state = environment.state
        let old = state.tables.catalog
        try noteInterruptions()
        _ = try environment.reader.query(CatalogSQL.refreshTextNeeds)
        let began = ContinuousClock.now
        let fresh = try CatalogReader.readCatalog(
            from: environment.reader, roles: state.tables.roles.union(roles),
            readsWAL: environment.configuration.readsWAL
        ).reusingTables(old)
        state.tables.roles = fresh.knownRoles
        confirmCurrent(asOf: began)
        state.statistics.faultyTables = fresh.faults.count
        guard !fresh.isSame(as: old) else { return }
        state.tables.replaceCatalog(fresh, logger: environment.logger)
        environment.consumer.catalogChanged(fresh)
    }

    /// Records that a window brought the version along and it matched the catalog's.
    func confirmCurrent(asOf began: ContinuousClock.Instant) {
        asOf = began
        dueAt = began + Self.interval
    }

    /// Detects a table whose capture has changed. The capture may have been repaired already, but changes written in
    /// between are missing; this records the fact for all hubs (SchemaCapture.sql), and the next check of the outbox
    /// finds it (`LossDetector`).
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
