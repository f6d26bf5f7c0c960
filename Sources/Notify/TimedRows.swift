import Hub
import Matching
import Postgres
import Push
import Stores
import Wire
import Workers

/// Rows that are pushed when a time in them has come (`alerts.timed`): claims the due ones, reads them again, asks for their audience,
/// and queues their alerts. Confined to the worker's thread.
///
/// The application's table is the schedule, so nothing has to be remembered of a row before it is due: a row that was moved, deleted or
/// done, by any client and with or without a running hub, is found in that state when its time comes. The feed only speeds up rows that
/// are written after their time.
final class TimedRows {
    private let context: PushContext
    private let tables: TimedTables
    private let alerts: AlertSender
    /// The schedules, in the order of the sources.
    private var schedules: [TimedSchedule]
    private var opened: Set<Name> = []
    /// Claims of this hub that are not settled yet.
    private var claims: [Claim] = []
    private var known: Set<Name> = []
    /// The number of claims for each column.
    private var waiting: [Name: Int] = [:]
    /// Keys of written rows, by the index of their source.
    private var hints: [Int: [Name]] = [:]
    private var hinted = 0
    private var budget = TimedBudget()
    private var trials = BatchTrials<Name>()
    /// In monotonic milliseconds.
    private var nextRetake: Int64 = 0
    private var warnings: RateLimitedLog

    /// Rows whose audience was asked for because their time had come.
    private(set) var count = 0
    /// Rows that were pushed long after their time.
    private(set) var late = 0
    /// Rows whose time had come but that no user was alerted of: too old when a hub could send again, or not answered by Postgres.
    private(set) var lost = 0
    /// Alerts withheld because they exceeded one user's limit per minute.
    private(set) var withheld = 0

    private struct Claim {
        let claim: TimedClaim
        /// In monotonic milliseconds, as the next.
        let since: Int64
        var nextTry: Int64 = 0
        var tries = 0
    }

    /// The maximum number of rows that are read, and whose audience is asked for, at once.
    private static let batch = 500
    /// The maximum number of rows that one look claims: after that it reads again the rows it has passed.
    private static let mostTaken = 2000
    /// The maximum number of waiting claims of one column: a killed hub leaves no more than that to others.
    private static let mostClaims = 4000
    /// Looks within one turn of the worker, so that messages do not wait for a table.
    private static let looksPerTurn = 8
    private static let mostHints = 10_000
    private static let retakePeriod: Int64 = 1000
    /// The time after which an unanswered audience is abandoned, and the first and the longest pause between questions. Only the row
    /// itself waits meanwhile.
    private static let patience: Int64 = 600_000
    private static let pause: Int64 = 1000
    private static let longestPause: Int64 = 60_000

    init(_ context: PushContext, _ alerts: AlertSender) {
        self.context = context
        self.alerts = alerts
        tables = context.timedTables
        schedules = tables.sources.map { _ in TimedSchedule() }
        warnings = RateLimitedLog(logger: context.logger)
    }

    /// The time of the next work, in monotonic milliseconds; nil if no column is configured.
    var nextDue: Int64? {
        guard !tables.isEmpty else { return nil }
        var next = min(nextRetake, claims.lazy.map(\.nextTry).min() ?? .max)
        for (place, table) in tables.tables.enumerated() where table.map({ hasRoom($0) }) ?? false {
            next = min(next, hints[place] == nil ? schedules[place].nextAt : 0)
        }
        return next
    }

    private func hasRoom(_ table: TimedTable) -> Bool { waiting[table.source.name, default: 0] < Self.mostClaims }

    /// Notes written rows: those already due need not wait to be found.
    func note(_ changes: [RowChange]) {
        for change in changes {
            guard let record = change.record else { continue }
            for (place, table) in tables.tables.enumerated() {
                guard let table, table.source.isOf(change.table.schema, change.table.name), hinted < Self.mostHints,
                    let key = table.key(of: record)
                else { continue }
                hints[place, default: []].append(key)
                hinted += 1
            }
        }
    }

    /// Forgets the claims of this hub's last connection: they are taken over from the database.
    func reconnected() {
        claims = []
        known = []
        waiting = [:]
        nextRetake = 0
    }

    /// Queues the alerts of rows whose time has come.
    func advance(_ store: PushStore) throws {
        guard let statement = context.rules.audience, !tables.isEmpty else { return }
        try tables.refresh(store, isExact: false)
        try retake(store)
        for place in tables.sources.indices { try look(place, store) }
        try settleDue(statement, store)
    }

    // MARK: Claiming

    private func add(_ taken: [TimedClaim]) {
        let now = context.now.monotonic
        for claim in taken.sorted(by: { ($0.due, $0.message) < ($1.due, $1.message) })
        where known.insert(claim.message).inserted {
            claims.append(Claim(claim: claim, since: now))
            waiting[claim.source, default: 0] += 1
        }
    }

    private func retake(_ store: PushStore) throws {
        let now = context.now.monotonic
        guard now >= nextRetake else { return }
        nextRetake = now + Self.retakePeriod
        guard claims.count < Self.mostClaims else { return }
        add(try store.retakeTimed(tables.sources, limit: Self.mostTaken))
    }

    private func look(_ place: Int, _ store: PushStore) throws {
        guard let table = tables.tables[place] else {
            hinted -= hints.removeValue(forKey: place)?.count ?? 0
            return
        }
        var current: TimedSchedule.Look?
        do {
            try open(table, store)
            try lookAtHints(place, table, store)
            var looks = 0
            while looks < Self.looksPerTurn, hasRoom(table),
                let look = schedules[place].next(at: context.now.monotonic, life: context.rules.alertLife)
            {
                looks += 1
                current = look
                let began = context.now.monotonic
                let taken = try store.takeTimed(table, from: look.oldest, to: look.youngest, limit: Self.mostTaken)
                add(taken)
                let isFull = taken.count == Self.mostTaken
                let time = context.now
                let last = taken.map(\.due).max().map { time.monotonic - (time.unix - $0 / 1000) }
                var nextDue: Int64?
                if !isFull, !look.isLate {
                    nextDue = try store.nextTimed(table, within: TimedSchedule.period).map {
                        context.now.monotonic + $0
                    }
                    try store.noteLook(at: table)
                }
                schedules[place].looked(
                    look, began: began, isFull: isFull, last: last, nextDue: nextDue, at: context.now.monotonic)
            }
        } catch let error as PostgresError where error.kind == .server && !store.isBroken {
            schedules[place].failed(current, at: context.now.monotonic)
            tables.doubt()
            warnings.logWarning(
                "Rows of \(table.source.name) are not looked at, so what is due waits (\(error.message)).",
                about: table.source.name.text)
        }
    }

    private func open(_ table: TimedTable, _ store: PushStore) throws {
        guard !opened.contains(table.source.name) else { return }
        let missed = try store.openTimed(table, life: context.rules.alertLife)
        opened.insert(table.source.name)
        guard missed != 0 else { return }
        lost += missed ?? 1
        context.logger.error(
            """
            \(missed.map { "\($0)" } ?? "Some") rows of \(table.source.name) fell due while no hub could send, and are not pushed: \
            that is longer ago than alerts.hours.
            """)
    }

    private func lookAtHints(_ place: Int, _ table: TimedTable, _ store: PushStore) throws {
        guard hasRoom(table), let waiting = hints[place] else { return }
        let asked = Array(Set(waiting.prefix(Self.batch)))
        hinted -= min(waiting.count, Self.batch)
        hints[place] = waiting.count > Self.batch ? Array(waiting.dropFirst(Self.batch)) : nil
        add(
            try store.takeTimed(table, from: context.rules.alertLife, to: 0, limit: Self.batch, keys: asked))
    }

    // MARK: Alerting

    /// Settles one batch a turn, so that messages wait for no more.
    private func settleDue(_ statement: String, _ store: PushStore) throws {
        let now = context.now.monotonic
        let batch = Array(claims.lazy.filter { $0.nextTry <= now }.prefix(trials.mostRows ?? Self.batch))
        guard let first = batch.first else { return }
        try tables.refresh(store, isExact: true)
        var left: [Claim] = []
        if trials.isHopeless {
            // A write that always works: if it fails, too, no row is to blame.
            try store.heartbeat()
            try store.settleTimed([(first.claim, "refused")])
            lost += 1
            context.logger.error(
                """
                The row \(first.claim.message) is not pushed: Postgres refused what its alerts need, or ended the session, each time \
                that it was asked.
                """)
        } else {
            do { left = try alert(batch, statement, store) } catch {
                // Other users' pushes must not wait for one row for ever.
                let mayPass = (error as? PostgresError)?.mayPass ?? false
                trials.batchFailed(at: first.claim.message, rows: batch.count, mayPass: mayPass, at: .now)
                throw error
            }
        }
        trials.batchSucceeded(rows: batch.count)
        let done = Set(batch.map(\.claim.message))
        claims = claims.filter { !done.contains($0.claim.message) } + left
        known.subtract(done)
        known.formUnion(left.map(\.claim.message))
        waiting = claims.reduce(into: [:]) { counts, claim in counts[claim.claim.source, default: 0] += 1 }
        alerts.lookNow()
    }

    /// - Returns: the claims to ask about again.
    private func alert(_ batch: [Claim], _ statement: String, _ store: PushStore) throws -> [Claim] {
        var outcomes: [(claim: TimedClaim, outcome: String)] = []
        var left: [Claim] = []
        var due: [(claim: Claim, row: RowChange)] = []
        let now = context.now
        func wait(_ claim: Claim, atMost patience: Int64 = .max) {
            var claim = claim
            claim.nextTry = now.monotonic + min(Self.longestPause, Self.pause << Int64(min(claim.tries, 6)))
            claim.tries += 1
            let isTooOld = claim.claim.due / 1000 + context.rules.alertLife <= now.unix
            if isTooOld || now.monotonic - claim.since >= patience {
                outcomes.append((claim.claim, isTooOld ? "expired" : "unanswered"))
            } else {
                left.append(claim)
            }
        }
        for (source, claims) in Dictionary(grouping: batch, by: \.claim.source) {
            guard let table = tables.table(source) else {
                for claim in claims { wait(claim) }
                continue
            }
            for (claim, reading) in zip(claims, try store.readTimed(claims.map(\.claim), of: table)) {
                switch reading {
                case .due(let row): due.append((claim, row))
                case .gone: outcomes.append((claim.claim, "gone"))
                case .moved: outcomes.append((claim.claim, "moved"))
                case .done: outcomes.append((claim.claim, "done"))
                case .tooLarge: outcomes.append((claim.claim, "too large"))
                case .refused: outcomes.append((claim.claim, "refused"))
                case .unanswered: wait(claim)
                }
            }
        }
        let audience = due.isEmpty ? nil : try store.audience(for: due.map(\.row), statement: statement)
        let unanswered = Set(audience?.unanswered ?? [])
        let members = Dictionary(grouping: audience?.members ?? [], by: \.change)
        var drafts: [AlertDraft] = []
        for (place, (claim, row)) in due.enumerated() {
            drafts += (members[place] ?? []).compactMap { draft(for: $0, of: row, claim.claim) }
            if unanswered.contains(place) {
                wait(claim, atMost: Self.patience)
            } else {
                outcomes.append(outcome(claim.claim, members[place]))
            }
        }
        if !drafts.isEmpty { alerts.noteEnqueued(try store.enqueue(drafts).count(where: \.isNew)) }
        try store.settleTimed(outcomes)
        count += due.count - unanswered.count
        report(outcomes)
        return left
    }

    private func outcome(_ claim: TimedClaim, _ members: [AudienceMember]?) -> (claim: TimedClaim, outcome: String) {
        guard claim.due / 1000 + context.rules.alertLife > context.now.unix else { return (claim, "expired") }
        return (claim, members == nil ? "nobody" : "alerted")
    }

    /// Drafts the alert for a member of the audience, connected or not: a time that has come is announced by no socket.
    private func draft(for member: AudienceMember, of row: RowChange, _ claim: TimedClaim) -> AlertDraft? {
        let time = context.now
        let expiresAt = claim.due / 1000 + context.rules.alertLife
        guard member.hasDevice, !member.isMuted, expiresAt > time.unix else { return nil }
        guard budget.admit(member.user, at: time.monotonic) else {
            withheld += 1
            warnings.logWarning(
                """
                A user is not alerted of all rows whose time has come: \(TimedBudget.mostPerMinute) in a minute are the most. It is \
                \(member.user.text.prefix(8))…
                """, about: "budget")
            return nil
        }
        let notification = MessageNotification(member.variables, badge: member.badge, preview: context.rules.preview)
        var variables = notification.variables
        if let badge = member.badge { variables.set("badge", badge) }
        if let id = row.messageID { variables.set("message_id", id) }
        variables.set("due_at", claim.due / 1_000_000)
        // Before all messages: the alert is due now, and does not wait for a held one.
        return AlertDraft(
            message: claim.message, user: member.user, conversation: notification.conversation,
            variables: variables.json, expiresAt: expiresAt, state: .due, reason: .always,
            place: 0)
    }

    /// Logs late and lost rows.
    private func report(_ outcomes: [(claim: TimedClaim, outcome: String)]) {
        let now = context.now.unix
        var (behind, most) = (0, Int64(0))
        var failed = 0
        for (claim, outcome) in outcomes {
            switch outcome {
            case "alerted":
                let delay = now - claim.due / 1000
                guard delay > TimedSource.lateAfter else { continue }
                behind += 1
                most = max(most, delay)
            case "expired", "refused", "unanswered", "too large": failed += 1
            default: break
            }
        }
        late += behind
        lost += failed
        if behind > 0 {
            warnings.logWarning(
                """
                \(behind) rows whose time had come are pushed late, by up to \(most / 1000) s, and more may follow: no hub could send \
                then, or they were written only afterwards.
                """, about: "late")
        }
        if failed > 0 {
            warnings.logWarning(
                """
                \(failed) rows whose time had come are not pushed, and more may follow; roost.timed_row says why in the column \
                outcome.
                """, about: "failed")
        }
    }
}
