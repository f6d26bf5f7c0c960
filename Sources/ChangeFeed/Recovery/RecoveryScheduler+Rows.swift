import Hub
import Matching
import Postgres
import Wire

/// Members that start from rows: the rows are read as one snapshot shows them, and then the member is sent what that
/// snapshot does not see, as if it had been cut off there. So nothing is missed in between, and nothing comes twice.
extension RecoveryScheduler {
    /// Rows of one step.
    private static let batchRows = 128

    func beginMember(
        _ member: RecoveryMember, with rows: FirstRows?, of definition: SubscriptionDefinition, _ catalog: Catalog
    ) {
        if !member.hasBegun, !member.from.isCursor { sink.deliverRecovery(member.id, [.began(.rows)], whenTaken: {}) }
        member.hasBegun = true
        member.hasRows = true
        sink.deliverRecovery(member.id, [.rowsBegin], whenTaken: {})
        guard let rows else { return }
        let claims = member.question.claims
        let wishes = rows.entries.map { RowWish($0, as: claims.role, in: catalog, for: definition) }
        let bindings = definition.bindings
        let reading = RowReading(
            claims: claims, topic: rows.topic, parts: wishes.compactMap(\.part), isForEvents: true
        ) { [weak self, inbox, rowReader, id = member.id] outcome, bytes in
            let isTaken: @Sendable () -> Void = { rowReader.releaseBytes(bytes, of: claims) }
            inbox.postWork { [weak self] context in
                guard let self, let member = self.findMember(id) else { return isTaken() }
                self.sendOutcome(outcome, of: wishes, for: bindings, to: member, context, whenTaken: isTaken)
            }
        }
        rowReader.requestRows(reading)
    }

    /// Sends a member its rows, and has the changes after them looked up.
    private func sendOutcome(
        _ outcome: RowReading.Outcome, of wishes: [RowWish], for bindings: [ChangeBinding], to member: RecoveryMember,
        _ context: FeedContext, whenTaken: @escaping @Sendable () -> Void
    ) {
        var answers: [Result<RowReading.Answer, SubscriptionError>] = []
        var shown: String?
        switch outcome {
        case .unavailable, .tooMany:
            var reason = "Postgres did not answer"
            if case .tooMany = outcome { reason = "too many joins of yours wait for rows" }
            let problem = SubscriptionError("Rows were not read: \(reason); join again later")
            answers = wishes.map { _ in .failure(problem) }
        case .read(let snapshot, let read):
            answers = read
            shown = snapshot
        }
        let served = zip(wishes.compactMap(\.part), answers).filter { if case .success = $0.1 { true } else { false } }
        let coverage = RowCoverage(of: bindings, by: served.map(\.0.statement))
        let goesOnAtRows = shown != nil && (member.question.isNew || coverage.isWhole)
        // A member whose rows were not read, or do not show everything it missed, continues from its original position.
        let point = goesOnAtRows ? shown.map { RecoveryPoint.snapshot($0) } : nil
        guard
            let cursor = context.locate(point ?? member.from) ?? shown.flatMap({ context.locate(.snapshot($0)) })
        else {
            whenTaken()
            return failMembers([member])
        }
        if let shown = shown.flatMap({ Snapshot($0) }) {
            member.beginRows(with: shown, of: coverage.tables, goingOnAt: point.map { _ in .cursor(cursor) })
        }
        var rest = answers[...]
        var entries: [FirstRowsReport.Entry] = []
        for wish in wishes {
            switch wish.part == nil ? .failure(wish.problem) : rest.popFirst() ?? .failure(wish.problem) {
            case .failure(let error):
                entries.append(
                    FirstRowsReport.Entry(schema: wish.schema, table: wish.table, problem: error.message))
            case .success(let answer):
                sendRows(answer.rows, ids: wish.ids, to: member)
                entries.append(
                    FirstRowsReport.Entry(
                        schema: wish.schema, table: wish.table, count: answer.rows.count, next: answer.next))
            }
        }
        let report = FirstRowsReport(cursor: cursor, tables: entries)
        sink.deliverRecovery(member.id, [.rowsEnd(report)], whenTaken: whenTaken)
        addNewcomer(member)
    }

    private func sendRows(_ rows: [[UInt8]], ids: [Int], to member: RecoveryMember) {
        let (id, group) = (member.id, member.question.group)
        for start in stride(from: 0, to: rows.count, by: Self.batchRows) {
            let batch = rows[start..<min(start + Self.batchRows, rows.count)].map {
                ChangeDelivery(group: group, operation: .insert, ids: ids, data: $0, isSnapshot: true)
            }
            member.underway += 1
            sink.deliverRecovery(id, [.changes(batch)]) { [weak self, inbox] in
                inbox.postWork { [weak self] _ in self?.batchTaken(id) }
            }
        }
    }
}

/// A member's wish for the rows of one table.
struct RowWish: Sendable {
    /// The name as the client wrote it, as far as it could be read.
    let schema: String
    let table: String
    /// Nil if the wish cannot be served.
    let part: RowReading.Part?
    /// The reason for a refusal.
    let problem: SubscriptionError
    /// The bindings with which its rows are sent.
    let ids: [Int]

    init(
        _ entry: Result<RowsRequest, SubscriptionError>, as role: Name, in catalog: Catalog,
        for definition: SubscriptionDefinition
    ) {
        do throws(SubscriptionError) {
            let request = try entry.get()
            (schema, table) = (request.schema.text, request.table.text)
            let part: RowReading.Part
            do throws(SubscriptionError) {
                part = try RowReading.Part(request, as: role, in: catalog)
                let found = definition.ids(for: part.statement)
                guard !found.isEmpty else {
                    throw SubscriptionError("they need an entry of postgres_changes about the inserts of that table")
                }
                (self.part, problem, ids) = (part, SubscriptionError("Rows were not read"), found)
            } catch {
                (self.part, problem, ids) = (nil, SubscriptionError("Rows of \(schema).\(table): \(error.message)"), [])
            }
        } catch {
            (schema, table, part, problem, ids) = ("", "", nil, SubscriptionError("Rows: \(error.message)"), [])
        }
    }
}

extension SubscriptionDefinition {
    /// The bindings that subscribe to inserts of a statement's table: those with the same filter, or all if none has it.
    fileprivate func ids(for statement: RowsStatement) -> [Int] {
        var (same, all): ([Int], [Int]) = ([], [])
        for (id, binding) in zip(ids, bindings) {
            guard case .success(let parameters) = binding.parameters, parameters.tables.includes(statement.table),
                parameters.events.contains(.insert)
            else { continue }
            if !all.contains(id) { all.append(id) }
            if parameters.filter == statement.request.filter, !same.contains(id) { same.append(id) }
        }
        return same.isEmpty ? all : same
    }
}

/// The part of a member's subscriptions that its rows show.
struct RowCoverage {
    /// Tables for which the rows show everything the member subscribed to.
    private(set) var tables: Set<UInt32> = []
    /// True if the rows show everything the member subscribed to.
    private(set) var isWhole = true

    init(of bindings: [ChangeBinding], by statements: [RowsStatement]) {
        var left: Set<UInt32> = []
        for case .success(let parameters) in bindings.map(\.parameters) {
            let shown = statements.filter { parameters.tables.includes($0.table) }
            let isShown = shown.contains { statement in
                let filter = statement.request.filter
                return filter.conditions.isEmpty || filter == parameters.filter
            }
            let oids = shown.map(\.table.oid)
            if parameters.tables.isWildcard || !isShown {
                isWhole = false
                left.formUnion(oids)
            } else {
                tables.formUnion(oids)
            }
        }
        tables.subtract(left)
    }
}
