import Hub
import Matching
import Wire

/// What the policies say of the rows of a batch: they are asked all together, and looked up for each row and user.
struct BatchVisibility {
    private struct Key: Hashable {
        let table: UInt32
        let role: Name
        /// A table altered within the batch is two.
        let layout: ObjectIdentifier

        init(_ table: Table, _ role: Name) {
            self.table = table.oid
            self.role = role
            layout = ObjectIdentifier(table)
        }
    }

    private var questions: [Key: VisibilityQuestion] = [:]

    /// Asks the policies about every row and everybody whose filters it matched; again, where a scope did not hold.
    ///
    /// - Throws: `PostgresError` where the database does not answer.
    mutating func judge(
        _ matches: [Int: DeliveryBatch.Match], for registry: borrowing SubscriptionRegistry,
        among audience: BatchAudience,
        catalog: Catalog, by visibility: inout Visibility, at now: ContinuousClock.Instant
    ) throws {
        repeat {
            questions = [:]
            for place in matches.keys.sorted() {
                if let match = matches[place] { ask(match, registry, audience, catalog, &visibility, now) }
            }
        } while try !visibility.decide(Array(questions.values))
    }

    /// What was found of a row for the users of a role; nil where nobody was asked.
    func verdict(on match: DeliveryBatch.Match, for role: Name) -> Verdict? {
        guard let question = questions[Key(match.change.table, role)],
            let row = question.number(of: .init(change: match.place, isOld: false))
        else { return nil }
        let old = question.number(of: .init(change: match.place, isOld: true))
        return Verdict(question: question, row: row, oldRow: old)
    }

    private mutating func ask(
        _ match: DeliveryBatch.Match, _ registry: borrowing SubscriptionRegistry, _ audience: BatchAudience,
        _ catalog: Catalog, _ visibility: inout Visibility, _ now: ContinuousClock.Instant
    ) {
        // There is nothing left to judge of a row that is gone; of what is shown, the primary key, see `DeliveryPipeline`.
        guard match.change.operation != .delete else { return }
        let table = match.change.table
        for delivery in match.deliveries {
            guard let definition = registry.definition(delivery.group),
                catalog.access(of: definition.role)?.table(table.oid)?.isRestricted == true
            else { continue }
            let groups = definition.groups.filter { audience.includes($0.key, of: definition, at: match.place) }
            if groups.isEmpty { continue }
            let question = question(table, definition.role, visibility)
            for row in rows(of: match, in: question, &visibility, now) {
                for principals in groups.values {
                    for principal in principals.values { question.ask(principal, row) }
                }
            }
        }
    }

    /// The row as it is now, and as it was where the replica identity shows more of it than its key.
    private func rows(
        of match: DeliveryBatch.Match, in question: VisibilityQuestion, _ visibility: inout Visibility,
        _ now: ContinuousClock.Instant
    ) -> [Int] {
        let change = match.change
        var versions: [VisibilityQuestion.RowID] = []
        if change.record != nil { versions.append(.init(change: match.place, isOld: false)) }
        if change.operation == .update, change.oldRecord != nil,
            change.table.columns.contains(where: { $0.isReplicaIdentity && !$0.isPrimaryKey })
        {
            versions.append(.init(change: match.place, isOld: true))
        }
        return versions.map { version in
            if let known = question.number(of: version) { return known }
            let record = (version.isOld ? change.judgedOldRecord : change.judgedRecord) ?? []
            return question.row(version, record) { visibility.answers(change.table.oid, $0, at: now) }
        }
    }

    private mutating func question(
        _ table: Table, _ role: Name, _ visibility: borrowing Visibility
    ) -> VisibilityQuestion {
        let key = Key(table, role)
        if let known = questions[key] { return known }
        let question = VisibilityQuestion(table: table, role: role, scope: visibility.scope(of: table, for: role))
        questions[key] = question
        return question
    }

    /// What policies say of one row, and of what it was before, where that is shown too.
    struct Verdict {
        fileprivate let question: VisibilityQuestion
        fileprivate let row: Int
        fileprivate let oldRow: Int?

        func sees(_ principal: Principal) -> Bool { question.sees(principal, row) }

        func seesOld(_ principal: Principal) -> Bool { oldRow.map { question.sees(principal, $0) } ?? true }

        /// A policy failed on something that the user may be shown.
        func isUndecided(_ principal: Principal) -> Bool {
            question.isUndecided(principal, row)
                || oldRow.map { question.sees(principal, row) && question.isUndecided(principal, $0) } ?? false
        }

        /// The policies were asked about the row for the user, and did not fail.
        func isDecided(_ principal: Principal) -> Bool { question.isDecided(principal, row) }

        /// That error is about values, which may lie in the row.
        func isOfData(_ principal: Principal) -> Bool { question.isOfData(principal) }

        /// Nothing failed: a policy waits for a lock.
        func isLocked(_ principal: Principal) -> Bool { question.isLocked(principal) }
    }
}
