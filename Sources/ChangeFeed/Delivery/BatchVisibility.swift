import Hub
import Matching
import Wire

/// The policies' verdicts on a batch's rows: evaluated all together, then looked up for each row and user.
struct BatchVisibility {
    private struct Key: Hashable {
        let table: UInt32
        let role: Name
        /// A table that is altered within the batch counts as two.
        let layout: ObjectIdentifier

        init(_ table: Table, _ role: Name) {
            self.table = table.oid
            self.role = role
            layout = ObjectIdentifier(table)
        }
    }

    /// The rows that one transaction deleted.
    private struct DeletionKey: Hashable {
        let key: Key
        let transaction: WriterTransaction
    }

    private var questions: [Key: VisibilityQuestion] = [:]
    /// Second questions, with the rows that were deleted together put back.
    private var former: [DeletionKey: VisibilityQuestion] = [:]

    /// Asks the policies about every row and every user whose filters it matched; again, if a scope turned out to be wrong.
    ///
    /// Deleted rows are judged by their old values. Users to whom the present state does not show a deleted row are asked
    /// about once more, with all rows that the same transaction deleted put back (`Revival`): when a conversation is
    /// deleted, so are its members.
    ///
    /// - Throws: `PostgresError` if the database does not answer.
    mutating func judgeRows(
        _ matches: [Int: DeliveryBatch.Match], for registry: borrowing SubscriptionRegistry,
        among audience: BatchAudience,
        catalog: Catalog, by visibility: inout Visibility, at now: ContinuousClock.Instant
    ) throws {
        repeat {
            questions = [:]
            for place in matches.keys.sorted() {
                if let match = matches[place] { askPolicies(match, registry, audience, catalog, &visibility, now) }
            }
        } while try !visibility.decideQuestions(Array(questions.values))
        try judgeFormer(matches, for: registry, among: audience, catalog: catalog, by: &visibility, at: now)
    }

    /// The verdict on a row for the users of a role; nil if no policy was asked.
    func verdict(on match: DeliveryBatch.Match, for role: Name) -> Verdict? {
        let key = Key(match.change.table, role)
        let version = Self.decidingVersion(match)
        guard let question = questions[key], let row = question.number(of: version) else { return nil }
        if let transaction = match.change.deletion {
            let former = former[DeletionKey(key: key, transaction: transaction)]
            let again = former.flatMap { former in former.number(of: version).map { (former, $0) } }
            return Verdict(question: question, row: row, oldRow: nil, former: again)
        }
        let old = question.number(of: .init(change: match.place, isOld: true))
        return Verdict(question: question, row: row, oldRow: old)
    }

    /// The row version that decides who receives a change.
    private static func decidingVersion(_ match: DeliveryBatch.Match) -> VisibilityQuestion.RowID {
        .init(change: match.place, isOld: match.change.operation == .delete)
    }

    private mutating func askPolicies(
        _ match: DeliveryBatch.Match, _ registry: borrowing SubscriptionRegistry, _ audience: BatchAudience,
        _ catalog: Catalog, _ visibility: inout Visibility, _ now: ContinuousClock.Instant
    ) {
        if match.isKeyAlone { return }
        let table = match.change.table
        for delivery in match.deliveries {
            guard let definition = registry.definition(delivery.group),
                catalog.access(of: definition.role)?.table(table.oid)?.isRestricted == true
            else { continue }
            let groups = definition.groups.filter { audience.includes($0.key, of: definition, at: match.place) }
            if groups.isEmpty { continue }
            let question = findQuestion(table, definition.role, visibility)
            for row in rows(of: match, in: question, &visibility, now) {
                for principals in groups.values {
                    for principal in principals.values { question.addAsker(principal, row) }
                }
            }
        }
    }

    /// Asks once more about deleted rows, for the users who are not shown them.
    private mutating func judgeFormer(
        _ matches: [Int: DeliveryBatch.Match], for registry: borrowing SubscriptionRegistry,
        among audience: BatchAudience, catalog: Catalog, by visibility: inout Visibility,
        at now: ContinuousClock.Instant
    ) throws {
        former = [:]
        var unseen:
            [(match: DeliveryBatch.Match, role: Name, transaction: WriterTransaction, principals: [Principal])] = []
        for place in matches.keys.sorted() {
            guard let match = matches[place], let transaction = match.change.deletion else { continue }
            for delivery in match.deliveries {
                guard let definition = registry.definition(delivery.group),
                    let verdict = verdict(on: match, for: definition.role)
                else { continue }
                let groups = definition.groups.filter { audience.includes($0.key, of: definition, at: place) }
                let left = groups.values.flatMap(\.values).filter { !verdict.sees($0) && !verdict.isUndecided($0) }
                if !left.isEmpty { unseen.append((match, definition.role, transaction, left)) }
            }
        }
        guard !unseen.isEmpty else { return }
        try visibility.learnDeletions(by: Set(unseen.lazy.map(\.transaction)))
        for (match, role, transaction, principals) in unseen {
            let table = match.change.table
            let key = DeletionKey(key: Key(table, role), transaction: transaction)
            guard
                let question = former[key]
                    ?? formerQuestion(key, table, role, reads: questions[key.key]?.reads, visibility)
            else { continue }
            let version = Self.decidingVersion(match)
            let row =
                question.number(of: version)
                ?? question.addRow(version, match.change.judgedOldRecord ?? []) {
                    visibility.findAnswers(table.oid, $0, before: transaction, at: now)
                }
            for principal in principals { question.addAsker(principal, row) }
        }
        // A wrong scope was detected before.
        _ = try visibility.decideQuestions(Array(former.values))
    }

    private mutating func formerQuestion(
        _ key: DeletionKey, _ table: Table, _ role: Name, reads: Set<UInt32>?, _ visibility: borrowing Visibility
    ) -> VisibilityQuestion? {
        guard let revival = visibility.revival(for: key.transaction, reads: reads) else { return nil }
        let question = VisibilityQuestion(
            table: table, role: role, scope: visibility.scope(of: table, for: role), revival: revival)
        former[key] = question
        return question
    }

    /// The row's new version, and its old one if the replica identity shows more of it than its key, or if the row is gone.
    private func rows(
        of match: DeliveryBatch.Match, in question: VisibilityQuestion, _ visibility: inout Visibility,
        _ now: ContinuousClock.Instant
    ) -> [Int] {
        let change = match.change
        var versions: [VisibilityQuestion.RowID] = []
        if change.record != nil { versions.append(.init(change: match.place, isOld: false)) }
        let showsOld = change.table.columns.contains { $0.isReplicaIdentity && !$0.isPrimaryKey }
        if change.operation == .delete || change.operation == .update && change.oldRecord != nil && showsOld {
            versions.append(.init(change: match.place, isOld: true))
        }
        if change.operation == .delete { question.hasDeletions = true }
        return versions.map { version in
            if let known = question.number(of: version) { return known }
            let record = (version.isOld ? change.judgedOldRecord : change.judgedRecord) ?? []
            return question.addRow(version, record) { visibility.findAnswers(change.table.oid, $0, at: now) }
        }
    }

    private mutating func findQuestion(
        _ table: Table, _ role: Name, _ visibility: borrowing Visibility
    ) -> VisibilityQuestion {
        let key = Key(table, role)
        if let known = questions[key] { return known }
        let question = VisibilityQuestion(table: table, role: role, scope: visibility.scope(of: table, for: role))
        questions[key] = question
        return question
    }

    /// The policies' verdict on one row, and on its old version if that is shown too.
    struct Verdict {
        fileprivate let question: VisibilityQuestion
        fileprivate let row: Int
        fileprivate let oldRow: Int?
        /// The second question about the row, if there was one.
        fileprivate var former: (question: VisibilityQuestion, row: Int)?

        func sees(_ principal: Principal) -> Bool {
            question.sees(principal, row) || former.map { $0.question.sees(principal, $0.row) } ?? false
        }

        func seesOld(_ principal: Principal) -> Bool { oldRow.map { question.sees(principal, $0) } ?? true }

        /// True if a policy failed on something that the user may be allowed to see.
        func isUndecided(_ principal: Principal) -> Bool {
            if let former, former.question.isUndecided(principal, former.row) { return !sees(principal) }
            return question.isUndecided(principal, row)
                || oldRow.map { question.sees(principal, row) && question.isUndecided(principal, $0) } ?? false
        }

        /// True if the policies were asked about the row for the user, and did not fail.
        func isDecided(_ principal: Principal) -> Bool {
            question.isDecided(principal, row)
                && former.map { sees(principal) || $0.question.isDecided(principal, $0.row) } ?? true
        }

        /// True if that error is about values, which may be in the row.
        func isOfData(_ principal: Principal) -> Bool {
            question.isOfData(principal) || former?.question.isOfData(principal) ?? false
        }

        /// True if a policy waits for a lock rather than fails.
        func isLocked(_ principal: Principal) -> Bool {
            question.isLocked(principal) || former?.question.isLocked(principal) ?? false
        }
    }
}
