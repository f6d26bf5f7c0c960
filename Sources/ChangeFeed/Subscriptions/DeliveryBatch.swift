import Hub
import Matching
import Postgres

/// One batch of entries on its way to the loops: matched, judged, encoded.
struct DeliveryBatch: ~Copyable {
    private struct Match {
        let change: RowChange
        /// Its place in the batch.
        let place: Int
        let deliveries: [Matches.Delivery]
    }

    private struct QuestionKey: Hashable {
        let table: UInt32
        let role: String
        /// A table altered within the batch is two.
        let layout: ObjectIdentifier
    }

    private let entries: [FeedEntry]
    private let catalog: Catalog
    private let cursors: CursorWindow?
    /// Nil where everything is meant for everybody.
    private let gate: RecoveryAudience?
    /// Of changes that waited (`PostponedChanges`), by place: for whom. Nil where they come for the first time.
    private let waiting: [PostponedChanges.Item]?
    /// Of changes that waited until filters were decided (`UndecidedChanges`), by place. Nil for others.
    private let decided: [UndecidedChanges.Item]?
    /// For whom each change has to wait, by its place.
    private(set) var postponed: [Int: Set<PostponedChanges.Member>] = [:]
    /// Members that recover, and for whom a policy failed on what they missed.
    private(set) var failed: Set<ChangeGroupID> = []
    /// For whom some change of this round has to wait.
    private var behind: Set<PostponedChanges.Member> = []
    private var matches: [Int: Match] = [:]
    private var questions: [QuestionKey: VisibilityQuestion] = [:]
    private let now = ContinuousClock.now

    init(_ entries: [FeedEntry], catalog: Catalog, cursors: CursorWindow? = nil, gate: RecoveryAudience? = nil) {
        self.entries = entries
        self.catalog = catalog
        self.cursors = cursors
        self.gate = gate
        waiting = nil
        decided = nil
    }

    /// What waited, with the answers to its conditions, in their order.
    init(_ decided: [UndecidedChanges.Item], met answers: [Bool], catalog: Catalog) {
        entries = decided.map { .change($0.change) }
        self.catalog = catalog
        cursors = nil
        gate = nil
        waiting = nil
        self.decided = decided
        var next = 0
        for (place, item) in decided.enumerated() {
            let mine = Array(answers[next..<(next + item.matches.undecided.count)])
            next += mine.count
            let deliveries = item.matches.settled(by: mine)
            if !deliveries.isEmpty { matches[place] = Match(change: item.change, place: place, deliveries: deliveries) }
        }
    }

    /// Another try with what waits.
    init(_ waiting: [PostponedChanges.Item], catalog: Catalog) {
        entries = waiting.map { .change($0.change) }
        self.catalog = catalog
        cursors = nil
        gate = RecoveryAudience(
            lacks: { group, place in waiting[place].members.contains { $0.group == group } },
            cursor: { _, place in waiting[place].cursor })
        self.waiting = waiting
        decided = nil
    }

    // MARK: Matching

    /// A binding whose filter was not decided.
    struct GivenUp: Hashable {
        let definition: Int
        let binding: Int
        let reason: String
    }

    /// Finds out whose filters the changes match, as far as the hub can tell.
    ///
    /// - Parameter undecided: what waits already.
    /// - Returns: what has to wait until Postgres has decided.
    mutating func match(
        in registry: inout SubscriptionRegistry, behind undecided: UndecidedChanges
    ) -> [UndecidedChanges.Item] {
        var later: [UndecidedChanges.Item] = []
        var behind: Set<Int> = []
        for (place, entry) in entries.enumerated() {
            guard case .change(let change) = entry else { continue }
            let found = registry.match(change)
            if found.isEmpty { continue }
            if found.undecided.isEmpty, behind.isEmpty, undecided.isEmpty {
                matches[place] = Match(change: change, place: place, deliveries: found.deliveries)
                continue
            }
            let (deliveries, rest) = found.split { behind.contains($0) || undecided.isBehind($0) }
            if !deliveries.isEmpty { matches[place] = Match(change: change, place: place, deliveries: deliveries) }
            if rest.isEmpty { continue }
            var groups: [Int: Set<ChangeGroupID>] = [:]
            for number in rest.groupsOfUndecided + rest.deliveries.map(\.group) where groups[number] == nil {
                groups[number] = registry.definition(number).map { Set($0.groups.keys) } ?? []
                behind.insert(number)
            }
            later.append(
                UndecidedChanges.Item(
                    change: change, cursor: cursors?.cursor(change.id) ?? "", matches: rest, groups: groups, since: now)
            )
        }
        return later
    }

    /// Finds out whose filters the changes match; `ask` answers what only Postgres knows, for all of them in one go.
    ///
    /// - Returns: bindings that were shown nothing of what they asked for, as it could not be decided: they have to be told.
    /// - Throws: `PostgresError` where the database does not answer.
    mutating func match(
        in registry: inout SubscriptionRegistry, asking ask: ([PostgresCondition]) throws -> ConditionEvaluator.Answers
    ) throws -> Set<GivenUp> {
        var found: [(place: Int, change: RowChange, matches: Matches)] = []
        var conditions: [PostgresCondition] = []
        var givenUp: Set<GivenUp> = []
        for (place, entry) in entries.enumerated() {
            guard case .change(let change) = entry else { continue }
            let matches = registry.match(change)
            if matches.isEmpty { continue }
            conditions += matches.conditions
            found.append((place, change, matches))
        }
        let answers = conditions.isEmpty ? ConditionEvaluator.Answers(met: []) : try ask(conditions)
        var next = 0
        for (place, change, found) in found {
            let mine = Array(answers.met[next..<(next + found.undecided.count)])
            if !answers.givenUp.isEmpty {
                for (offset, undecided) in found.undecided.enumerated() {
                    guard let reason = answers.givenUp[next + offset] else { continue }
                    givenUp.insert(GivenUp(definition: undecided.group, binding: undecided.id, reason: reason))
                }
            }
            next += mine.count
            matches[place] = Match(
                change: change, place: place, deliveries: mine.isEmpty ? found.deliveries : found.settled(by: mine))
        }
        return givenUp
    }

    // MARK: Judging

    /// Asks the policies about every row and everybody whose filters it matched.
    ///
    /// - Throws: `PostgresError` where the database does not answer.
    mutating func judge(for registry: borrowing SubscriptionRegistry, by visibility: inout Visibility) throws {
        repeat {
            questions = [:]
            for place in matches.keys.sorted() {
                if let match = matches[place] { ask(match, registry, &visibility) }
            }
        } while try !visibility.decide(Array(questions.values))
    }

    private mutating func ask(
        _ match: Match, _ registry: borrowing SubscriptionRegistry, _ visibility: inout Visibility
    ) {
        // There is nothing left to judge of a row that is gone; of what is shown, the primary key, see `view`.
        guard match.change.operation != .delete else { return }
        for delivery in match.deliveries {
            guard let definition = registry.definition(delivery.group),
                access(definition.role, match.change)?.isRestricted == true
            else { continue }
            let groups = definition.groups.filter { isMeant(for: $0.key, of: definition, match.place) }
            if groups.isEmpty { continue }
            let question = question(match.change.table, definition.role, &visibility)
            for row in rows(of: match, in: question, &visibility) {
                for principals in groups.values {
                    for principal in principals.values { question.ask(principal, row) }
                }
            }
        }
    }

    /// The row as it is now, and as it was where the replica identity shows more of it than its key.
    private func rows(of match: Match, in question: VisibilityQuestion, _ visibility: inout Visibility) -> [Int] {
        let change = match.change
        var versions: [(id: VisibilityQuestion.RowID, record: [UInt8])] = []
        if let record = change.record { versions.append((.init(change: match.place, isOld: false), record)) }
        if change.operation == .update, let old = change.oldRecord,
            change.table.columns.contains(where: { $0.isReplicaIdentity && !$0.isPrimaryKey })
        {
            versions.append((.init(change: match.place, isOld: true), old))
        }
        return versions.map { version in
            question.number(of: version.id)
                ?? question.row(version.id, version.record) { visibility.answers(change.table.oid, $0, at: now) }
        }
    }

    private mutating func question(
        _ table: Table, _ role: String, _ visibility: inout Visibility
    ) -> VisibilityQuestion {
        let key = QuestionKey(table: table.oid, role: role, layout: ObjectIdentifier(table))
        if let known = questions[key] { return known }
        let question = VisibilityQuestion(table: table, role: role, scope: visibility.scope(of: table, for: role))
        questions[key] = question
        return question
    }

    private func isMeant(for group: ChangeGroupID, of definition: SubscriptionDefinition, _ place: Int) -> Bool {
        if let decided { return decided[place].groups[definition.number]?.contains(group) ?? false }
        guard let gate else { return true }
        return gate.lacks(group, place)
    }

    private func access(_ role: String, _ change: RowChange) -> TableAccess? {
        catalog.access(of: role)?.table(change.table.oid)
    }

    // MARK: Encoding

    /// What each of the loops is to deliver, in the order of the entries.
    mutating func events(
        for registry: borrowing SubscriptionRegistry, loops: Int, encodingWith encoder: inout ChangeEncoder,
        beside postponement: inout PostponedChanges
    ) -> [[FeedEvent]] {
        var events = [[FeedEvent]](repeating: [], count: loops)
        for (place, entry) in entries.enumerated() {
            switch entry {
            case .broadcast(let message):
                for loop in events.indices { events[loop].append(.broadcast(message)) }
            case .change:
                guard let match = matches[place] else { continue }
                var encoded = EncodedViews(match.change)
                for delivery in match.deliveries {
                    guard let definition = registry.definition(delivery.group) else { continue }
                    append(delivery, of: match, to: definition, &encoded, &encoder, &events, &postponement)
                }
            }
        }
        return events
    }

    private mutating func append(
        _ delivery: Matches.Delivery, of match: Match, to definition: SubscriptionDefinition,
        _ encoded: inout EncodedViews, _ encoder: inout ChangeEncoder, _ events: inout [[FeedEvent]],
        _ postponement: inout PostponedChanges
    ) {
        let change = match.change
        guard let access = access(definition.role, change) else { return }
        func send(_ group: ChangeGroupID, _ recipients: ChangeDelivery.Recipients, _ old: ChangeView.OldRecord) {
            let view = ChangeView(selection: delivery.selection, granted: access.columns, oldRecord: old)
            let data = encoded.data(view, with: &encoder)
            let cursor =
                gate?.cursor(group, match.place) ?? decided?[match.place].cursor ?? encoded.cursor(in: cursors)
            let event = ChangeDelivery(
                group: group, operation: change.operation, ids: delivery.ids, data: data, recipients: recipients,
                cursor: cursor, committedAtMicroseconds: gate == nil ? change.committedAtMicroseconds : nil)
            events[group.loop].append(.change(event))
        }
        guard access.isRestricted, change.operation != .delete else {
            // Under row level security a DELETE shows the primary key and no more, to whatever role, as in the original:
            // whoever could see the row cannot be told from whoever could not.
            let isBare = change.operation == .delete && change.table.hasRowSecurity
            for (group, principals) in definition.groups where isMeant(for: group, of: definition, match.place) {
                let recipients = recipients(of: match.place, in: group, principals, postponement)
                if let recipients { send(group, recipients, isBare ? .primaryKey : .replicaIdentity) }
            }
            return
        }
        let key = QuestionKey(
            table: change.table.oid, role: definition.role, layout: ObjectIdentifier(change.table))
        guard let question = questions[key],
            let row = question.number(of: .init(change: match.place, isOld: false))
        else { return }
        let oldRow = question.number(of: .init(change: match.place, isOld: true))
        for (group, principals) in definition.groups where isMeant(for: group, of: definition, match.place) {
            var whole: [Claims] = []
            var bare: [Claims] = []
            for principal in principals.values {
                let member = PostponedChanges.Member(group: group, claims: principal.claims)
                guard isMeant(for: member, match.place) else { continue }
                let isUndecided =
                    question.isUndecided(principal, row)
                    || oldRow.map { question.sees(principal, row) && question.isUndecided(principal, $0) } ?? false
                if mustWait(member, isUndecided, match, definition.role, &postponement) { continue }
                guard question.sees(principal, row) else { continue }
                let seesOld = oldRow.map { question.sees(principal, $0) } ?? true
                if seesOld { whole.append(principal.claims) } else { bare.append(principal.claims) }
            }
            if !whole.isEmpty { send(group, .bearers(whole), .replicaIdentity) }
            if !bare.isEmpty { send(group, .bearers(bare), .primaryKey) }
        }
    }
}

extension DeliveryBatch {
    // MARK: Waiting for policies

    /// Whether a member is among those that a change is for.
    private func isMeant(for member: PostponedChanges.Member, _ place: Int) -> Bool {
        waiting.map { $0[place].members.contains(member) } ?? true
    }

    /// Who of a group gets a change that no policy decides about; nil for nobody. For those who wait it waits, too.
    private mutating func recipients(
        of place: Int, in group: ChangeGroupID, _ principals: [Claims: Principal], _ postponement: PostponedChanges
    ) -> ChangeDelivery.Recipients? {
        // Members of whom nothing is known yet, as their claims were not admitted, wait for nothing.
        guard waiting != nil || gate == nil && !(postponement.isEmpty && behind.isEmpty) else { return .everybody }
        var present: [Claims] = []
        var isWhole = waiting == nil
        for claims in principals.keys {
            let member = PostponedChanges.Member(group: group, claims: claims)
            guard isMeant(for: member, place) else { continue }
            if behind.contains(member) || waiting == nil && postponement.isBehind(member) {
                postponed[place, default: []].insert(member)
                isWhole = false
            } else {
                present.append(claims)
            }
        }
        if isWhole { return .everybody }
        return present.isEmpty ? nil : .bearers(present)
    }

    /// Whether a member has to wait for a change, because a policy failed on it or something else waits.
    private mutating func mustWait(
        _ member: PostponedChanges.Member, _ isUndecided: Bool, _ match: Match, _ role: String,
        _ postponement: inout PostponedChanges
    ) -> Bool {
        let table = match.change.table.oid
        guard waiting != nil || gate == nil else {
            if failed.contains(member.group) { return true }
            guard isUndecided, postponement.endsRecovery(match.change.id, of: table, role, at: now) else {
                return false
            }
            failed.insert(member.group)
            return true
        }
        var waits = behind.contains(member) || waiting == nil && postponement.isBehind(member)
        if isUndecided, !waits {
            waits = postponement.isWorthWaiting(table, role, at: now)
            if let waiting, now >= waiting[match.place].isHopelessAt {
                postponement.resign(table, role, at: now)
                waits = false
            }
        }
        guard waits else { return false }
        behind.insert(member)
        postponed[match.place, default: []].insert(member)
        return true
    }
}

/// The encodings of one change; nearly always there is one view, so a list is the quickest memory.
private struct EncodedViews {
    private let change: RowChange
    private var known: [(view: ChangeView, data: [UInt8])] = []
    private var cursor: String?

    init(_ change: RowChange) {
        self.change = change
    }

    mutating func cursor(in window: CursorWindow?) -> String {
        if let cursor { return cursor }
        let made = window?.cursor(change.id) ?? ""
        cursor = made
        return made
    }

    mutating func data(_ view: ChangeView, with encoder: inout ChangeEncoder) -> [UInt8] {
        if let known = known.first(where: { $0.view == view }) { return known.data }
        let data = encoder.data(for: change, view: view)
        known.append((view, data))
        return data
    }
}
