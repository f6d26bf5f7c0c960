import Hub
import Stores
import Wire
import Workers

/// The tables of `alerts.timed` in their present state in the database. Confined to the worker's thread.
final class TimedTables {
    let sources: [TimedSource]
    private let context: PushContext
    /// In the order of the sources; nil if nothing of a column can be pushed.
    private(set) var tables: [TimedTable?]
    private var version = ""
    /// In monotonic milliseconds.
    private var nextExamination: Int64 = 0
    private var versionReadAt: Int64?
    private var warnings: RateLimitedLog

    /// Indices are not part of the catalog's version: this is how often the hub checks for a new one.
    private static let examinationPeriod: Int64 = 30_000
    /// The same while something is wrong, which the operator may be fixing.
    private static let troubledPeriod: Int64 = 5000
    /// As often as the feed checks.
    private static let versionPeriod: Int64 = 500

    init(_ context: PushContext) {
        self.context = context
        sources = context.rules.audience == nil ? [] : context.rules.timed
        tables = Array(repeating: nil, count: sources.count)
        warnings = RateLimitedLog(logger: context.logger)
    }

    var isEmpty: Bool { sources.isEmpty }

    /// Has the tables examined again, because a statement about one failed: it may have changed.
    func doubt() { nextExamination = 0 }

    func table(_ source: Name) -> TimedTable? { tables.first { $0?.source.isNamed(source) ?? false } ?? nil }

    /// Checks for changes of the tables: from time to time, and as closely as the feed does when rows are read whose readers are
    /// decided by policies.
    func refresh(_ store: PushStore, isExact: Bool) throws {
        let now = context.now.monotonic
        let isVersionDue = isExact && versionReadAt.map { now - $0 >= Self.versionPeriod } ?? true
        guard isVersionDue || now >= nextExamination else { return }
        let current = try store.catalogVersion()
        versionReadAt = now
        guard current != version || now >= nextExamination else { return }
        let examined = try store.timedTables(of: sources)
        version = current
        tables = examined.map(\.table)
        let problems = examined.flatMap(\.problems)
        for problem in problems { warnings.logWarning(problem.sentence) }
        nextExamination = context.now.monotonic + (problems.isEmpty ? Self.examinationPeriod : Self.troubledPeriod)
    }
}

/// The alerts that belong to rows whose time has come, and the present state of those rows.
struct TimedVerdicts {
    /// The row is due and not done.
    var due: Set<Name> = []
    /// The row is gone, moved or done since the alert was queued.
    var over: Set<Name> = []
    /// The row cannot be read now.
    var unknown: Set<Name> = []

    init() {}

    /// Asks the database; does nothing if no column is configured.
    init(on alerts: [DueAlert], _ tables: TimedTables, _ store: PushStore) throws {
        guard !tables.isEmpty, !alerts.isEmpty else { return }
        let claims = try store.timedClaims(of: Set(alerts.map(\.message)))
        guard !claims.isEmpty else { return }
        try tables.refresh(store, isExact: true)
        for (source, claims) in Dictionary(grouping: claims, by: \.source) {
            guard let table = tables.table(source) else {
                // Alerts of a column that is no longer configured keep their earlier decision.
                let isKnown = tables.sources.contains { $0.isNamed(source) }
                for claim in claims { if isKnown { unknown.insert(claim.message) } else { due.insert(claim.message) } }
                continue
            }
            for (claim, reading) in zip(claims, try store.readTimed(claims, of: table)) {
                switch reading {
                case .due: due.insert(claim.message)
                case .gone, .moved, .done, .tooLarge, .refused: over.insert(claim.message)
                case .unanswered: unknown.insert(claim.message)
                }
            }
        }
    }
}
