import Hub
import Matching
import Wire

/// One batch of entries on its way to the loops, in three steps: the subscriptions they match (here), the users among these
/// who may see the rows (`BatchVisibility`), and each loop's events (`DeliveryPipeline`).
///
/// Confined to the feed's thread.
struct DeliveryBatch: ~Copyable {
    struct Match {
        let change: RowChange
        /// Its place in the batch.
        let place: Int
        let deliveries: [Matches.Delivery]
        /// True if it cannot be judged and its content is meaningless: a deleted row of which the WAL has only a surrogate
        /// key.
        let isKeyAlone: Bool

        init(change: RowChange, place: Int, deliveries: [Matches.Delivery]) {
            self.change = change
            self.place = place
            self.deliveries = deliveries
            isKeyAlone =
                change.operation == .delete && change.table.hasSurrogateKey && !change.isReduced
                && !change.hasWholeOldRow
        }
    }

    let entries: [FeedEntry]
    let catalog: Catalog
    let audience: BatchAudience
    /// By the place of the change.
    private(set) var matches: [Int: Match] = [:]
    private(set) var visible = BatchVisibility()
    /// The members that have to wait for each change, by its place, because a policy failed on it or an earlier change
    /// waits.
    var postponed: [Int: Set<PostponedChanges.Member>] = [:]
    /// The members that have to wait for some change of this batch.
    var behind: Set<PostponedChanges.Member> = []
    /// The users for whom a table's policies work; nil until first needed.
    private var working: Set<WorkingPolicies>?
    /// See `DeliveryPipeline.messageTables`.
    var messageTables: Set<UInt32> = []
    /// See `DeliveryPipeline.receiptTables`.
    var receiptTables: Set<UInt32> = []
    /// Recovering members for which a policy failed on a missed change.
    var failed: Set<ChangeGroupID> = []
    let now = ContinuousClock.now

    init(_ entries: [FeedEntry], catalog: Catalog, for audience: BatchAudience) {
        self.entries = entries
        self.catalog = catalog
        self.audience = audience
    }

    /// Changes that waited until filters were decided, with the answers to their conditions, in their order.
    init(_ decided: [UndecidedChanges.Item], met answers: [Bool], catalog: Catalog) {
        self.init(decided.map { .change($0.change) }, catalog: catalog, for: .decided(decided))
        var next = 0
        for (place, item) in decided.enumerated() {
            let mine = Array(answers[next..<(next + item.matches.undecided.count)])
            next += mine.count
            let deliveries = item.matches.resolveUndecided(by: mine)
            if !deliveries.isEmpty { matches[place] = Match(change: item.change, place: place, deliveries: deliveries) }
        }
    }

    /// Another attempt with changes that waited because a policy failed.
    init(_ waiting: [PostponedChanges.Item], catalog: Catalog) {
        self.init(waiting.map { .change($0.change) }, catalog: catalog, for: .postponed(waiting))
    }

    private struct WorkingPolicies: Hashable {
        let table: UInt32
        let role: Name
        /// Nil for any user.
        let claims: Claims?
    }

    /// True if a table's policies work in this batch: they show the user a row, or, for a role as a whole, they succeeded
    /// for some user.
    ///
    /// - Parameter claims: the user; nil for any user of the role.
    mutating func arePoliciesWorking(
        of table: UInt32, for claims: Claims?, _ role: Name, in registry: borrowing SubscriptionRegistry
    ) -> Bool {
        let known = working ?? workingPolicies(of: registry)
        working = known
        return known.contains(WorkingPolicies(table: table, role: role, claims: claims))
    }

    private func workingPolicies(of registry: borrowing SubscriptionRegistry) -> Set<WorkingPolicies> {
        var working: Set<WorkingPolicies> = []
        for match in matches.values {
            for delivery in match.deliveries {
                guard let definition = registry.definition(delivery.group),
                    let verdict = visible.verdict(on: match, for: definition.role)
                else { continue }
                let (table, role) = (match.change.table.oid, definition.role)
                for principals in definition.groups.values {
                    for principal in principals.values {
                        if verdict.sees(principal) {
                            working.insert(WorkingPolicies(table: table, role: role, claims: principal.claims))
                        }
                        if verdict.isDecided(principal) {
                            working.insert(WorkingPolicies(table: table, role: role, claims: nil))
                        }
                    }
                }
            }
        }
        return working
    }

    /// Finds the subscriptions that the changes match, as far as the hub can tell.
    ///
    /// - Parameter undecided: changes that already wait.
    /// - Returns: changes that have to wait for Postgres to decide.
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
                    change: change, cursor: audience.cursors?.cursorText(change.id) ?? "", matches: rest,
                    groups: groups,
                    since: now))
        }
        return later
    }

    /// Finds the subscriptions that the changes match; `ask` answers the questions that only Postgres can, all in one call.
    ///
    /// - Returns: bindings that did not get their changes because these could not be decided: their clients have to be
    ///   told.
    /// - Throws: `PostgresError` if the database does not answer.
    mutating func match(
        in registry: inout SubscriptionRegistry, asking ask: ([PostgresCondition]) throws -> ConditionEvaluator.Answers
    ) throws -> Set<GivenUpFilter> {
        var found: [(place: Int, change: RowChange, matches: Matches)] = []
        var conditions: [PostgresCondition] = []
        var givenUp: Set<GivenUpFilter> = []
        for (place, entry) in entries.enumerated() {
            guard case .change(let change) = entry else { continue }
            var matches = registry.match(change)
            // A group that already has the change does not wait for an answer about it.
            let unsure = matches.groupsOfUndecided
            if !unsure.isEmpty {
                matches.give(
                    up: Set(unsure).filter { number in !isForAnybody(of: registry.definition(number), at: place) })
            }
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
                    givenUp.insert(GivenUpFilter(definition: undecided.group, binding: undecided.id, reason: reason))
                }
            }
            next += mine.count
            matches[place] = Match(
                change: change, place: place,
                deliveries: mine.isEmpty ? found.deliveries : found.resolveUndecided(by: mine))
        }
        return givenUp
    }

    private func isForAnybody(of definition: SubscriptionDefinition?, at place: Int) -> Bool {
        guard let definition else { return false }
        return definition.groups.keys.contains { audience.includes($0, of: definition, at: place) }
    }

    /// Asks the policies about every row and every user whose filters it matched.
    ///
    /// - Throws: `PostgresError` if the database does not answer.
    mutating func judgeRows(for registry: borrowing SubscriptionRegistry, by visibility: inout Visibility) throws {
        try visible.judgeRows(matches, for: registry, among: audience, catalog: catalog, by: &visibility, at: now)
    }
}

/// The intended audience of a batch's changes.
enum BatchAudience {
    /// All subscribers: the changes come live from the feed, in a window with these cursors.
    case everybody(CursorWindow?)
    /// Recovering members: each gets the changes that it lacks.
    case recovering(RecoveryAudience)
    /// Members for which changes waited because a policy failed, by place.
    case postponed([PostponedChanges.Item])
    /// The groups for which changes waited until filters were decided, by place.
    case decided([UndecidedChanges.Item])

    /// The cursors of the window that live changes come from.
    var cursors: CursorWindow? {
        if case .everybody(let cursors) = self { cursors } else { nil }
    }

    /// True if the change at a place is for any member of a group.
    func includes(_ group: ChangeGroupID, of definition: SubscriptionDefinition, at place: Int) -> Bool {
        switch self {
        case .everybody: true
        case .recovering(let members): members.lacks(group, place)
        case .postponed(let items): items[place].members.contains { $0.group == group }
        case .decided(let items): items[place].groups[definition.number]?.contains(group) ?? false
        }
    }

    /// True if the change at a place is for certain members of a group that the change is for.
    func includes(_ member: PostponedChanges.Member, at place: Int) -> Bool {
        if case .postponed(let items) = self { items[place].members.contains(member) } else { true }
    }

    /// The cursor of a client that has the change at a place; nil if the window has it.
    func cursor(for group: ChangeGroupID, at place: Int) -> String? {
        switch self {
        case .everybody: nil
        case .recovering(let members): members.cursor(group, place)
        case .postponed(let items): items[place].cursor
        case .decided(let items): items[place].cursor
        }
    }

    /// True if the changes are delivered for the first time, so that the time since their commit is measured.
    var isMeasured: Bool {
        switch self {
        case .everybody, .decided: true
        case .recovering, .postponed: false
        }
    }
}

/// The recovering members for which a change is meant: members that catch up from different positions do not lack the same.
struct RecoveryAudience {
    /// True if a group, which is one member here, lacks the change at a place of the batch.
    let lacks: (ChangeGroupID, Int) -> Bool
    let cursor: (ChangeGroupID, Int) -> String
}
