import Hub
import Matching
import Wire

/// One batch of entries on its way to the loops, in three steps: whose filters they match (here), who of them may see the
/// rows (`BatchVisibility`), and what each loop is to send (`DeliveryPipeline`).
///
/// Confined to the feed's thread.
struct DeliveryBatch: ~Copyable {
    struct Match {
        let change: RowChange
        /// Its place in the batch.
        let place: Int
        let deliveries: [Matches.Delivery]
        /// Nobody can judge it, and all that is known of it means nothing: a deleted row of which the WAL has a surrogate key.
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
    /// For whom each change has to wait, by its place, as a policy failed on it or something else waits.
    var postponed: [Int: Set<PostponedChanges.Member>] = [:]
    /// For whom some change of this batch has to wait.
    var behind: Set<PostponedChanges.Member> = []
    /// For whom the policies of a table work; nil until it is asked for.
    private var working: Set<WorkingPolicies>?
    /// `DeliveryPipeline.messageTables`.
    var messageTables: Set<UInt32> = []
    /// `DeliveryPipeline.receiptTables`.
    var receiptTables: Set<UInt32> = []
    /// Members that recover, and for whom a policy failed on what they missed.
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
            let deliveries = item.matches.settled(by: mine)
            if !deliveries.isEmpty { matches[place] = Match(change: item.change, place: place, deliveries: deliveries) }
        }
    }

    /// Another try with changes that waited because a policy failed.
    init(_ waiting: [PostponedChanges.Item], catalog: Catalog) {
        self.init(waiting.map { .change($0.change) }, catalog: catalog, for: .postponed(waiting))
    }

    private struct WorkingPolicies: Hashable {
        let table: UInt32
        let role: Name
        /// Nil for whoever it is.
        let claims: Claims?
    }

    /// Whether the policies of a table work in this batch: they show somebody a row, or, for a role as a whole, they failed for
    /// somebody on nothing.
    ///
    /// - Parameter claims: who; nil for anybody of the role.
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
                    change: change, cursor: audience.cursors?.cursor(change.id) ?? "", matches: rest, groups: groups,
                    since: now))
        }
        return later
    }

    /// Finds out whose filters the changes match; `ask` answers what only Postgres knows, for all of them in one go.
    ///
    /// - Returns: bindings that were shown nothing of what they asked for, as it could not be decided: they have to be told.
    /// - Throws: `PostgresError` where the database does not answer.
    mutating func match(
        in registry: inout SubscriptionRegistry, asking ask: ([PostgresCondition]) throws -> ConditionEvaluator.Answers
    ) throws -> Set<GivenUpFilter> {
        var found: [(place: Int, change: RowChange, matches: Matches)] = []
        var conditions: [PostgresCondition] = []
        var givenUp: Set<GivenUpFilter> = []
        for (place, entry) in entries.enumerated() {
            guard case .change(let change) = entry else { continue }
            var matches = registry.match(change)
            // Who has the change already waits for no answer about it.
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
                change: change, place: place, deliveries: mine.isEmpty ? found.deliveries : found.settled(by: mine))
        }
        return givenUp
    }

    private func isForAnybody(of definition: SubscriptionDefinition?, at place: Int) -> Bool {
        guard let definition else { return false }
        return definition.groups.keys.contains { audience.includes($0, of: definition, at: place) }
    }

    /// Asks the policies about every row and everybody whose filters it matched.
    ///
    /// - Throws: `PostgresError` where the database does not answer.
    mutating func judge(for registry: borrowing SubscriptionRegistry, by visibility: inout Visibility) throws {
        try visible.judge(matches, for: registry, among: audience, catalog: catalog, by: &visibility, at: now)
    }
}

/// For whom the changes of a batch are meant.
enum BatchAudience {
    /// Everybody who is subscribed: they come live from the feed, in a window with these cursors.
    case everybody(CursorWindow?)
    /// Members who recover: each of them what it lacks.
    case recovering(RecoveryAudience)
    /// Members for whom changes waited as a policy failed, by place.
    case postponed([PostponedChanges.Item])
    /// The groups for which changes waited until filters were decided, by place.
    case decided([UndecidedChanges.Item])

    /// Of the window that the changes come from, where they come live.
    var cursors: CursorWindow? {
        if case .everybody(let cursors) = self { cursors } else { nil }
    }

    /// Whether the change at a place is for anybody of a group.
    func includes(_ group: ChangeGroupID, of definition: SubscriptionDefinition, at place: Int) -> Bool {
        switch self {
        case .everybody: true
        case .recovering(let members): members.lacks(group, place)
        case .postponed(let items): items[place].members.contains { $0.group == group }
        case .decided(let items): items[place].groups[definition.number]?.contains(group) ?? false
        }
    }

    /// Whether the change at a place is for some of a group's members; of those that the group's other changes are for.
    func includes(_ member: PostponedChanges.Member, at place: Int) -> Bool {
        if case .postponed(let items) = self { items[place].members.contains(member) } else { true }
    }

    /// What tells a client where it is that has the change at a place; nil where the window tells.
    func cursor(for group: ChangeGroupID, at place: Int) -> String? {
        switch self {
        case .everybody: nil
        case .recovering(let members): members.cursor(group, place)
        case .postponed(let items): items[place].cursor
        case .decided(let items): items[place].cursor
        }
    }

    /// How long changes took from their commit is measured by those that come for the first time.
    var isMeasured: Bool {
        switch self {
        case .everybody, .decided: true
        case .recovering, .postponed: false
        }
    }
}

/// For whom among those who recover a change is meant: while many catch up from many places, not everybody lacks the same.
struct RecoveryAudience {
    /// Whether a group, which is one member here, lacks the change at a place of the batch.
    let lacks: (ChangeGroupID, Int) -> Bool
    let cursor: (ChangeGroupID, Int) -> String
}
