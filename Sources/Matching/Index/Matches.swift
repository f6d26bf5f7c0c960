/// Who gets a change.
package struct Matches: Sendable {
    /// One frame: a group, the columns it selected, and the bindings that match.
    package struct Delivery: Sendable, Equatable {
        package let group: Int
        package let selection: Selection?
        /// The ids of the bindings that match, each once, in ascending order.
        package internal(set) var ids: [Int]

        package init(group: Int, selection: Selection?, ids: [Int]) {
            self.group = group
            self.selection = selection
            self.ids = ids
        }
    }

    /// A binding that gets the change if Postgres says so. One reference, because a row may have a thousand.
    package struct Undecided: Sendable {
        let entry: EntryTable.Entry
        /// The part of the filter that the index decides is decided already.
        let isFoundByValue: Bool
        /// Its filter was bound to the table as it is, so Postgres has to decide it for the next row as well. Others are bound
        /// again in a moment.
        package let isLasting: Bool

        package var group: Int { entry.group }
        package var selection: Selection? { entry.selection }
        package var id: Int { entry.ids[0] }
        fileprivate var filter: BoundFilter { isFoundByValue ? entry.residual : entry.filter }
    }

    /// Who gets the change for certain: at most one delivery for each group and selection, in no order.
    package internal(set) var deliveries: [Delivery] = []
    package internal(set) var undecided: [Undecided] = []
    /// What `undecided` is to be asked about; nil where nothing is undecided.
    var record: RowRecord?

    package init() {}

    package var isEmpty: Bool { deliveries.isEmpty && undecided.isEmpty }

    /// What Postgres has to be asked, in the order of `undecided`. Made when it is asked for, as it takes microseconds for
    /// each. Equal cells are kept once: a row may be large, and thousands ask about it.
    package var conditions: [PostgresCondition] {
        guard var record else { return [] }
        var cells: [UInt8] = []
        return undecided.map { undecided in
            let condition = undecided.filter.question(about: &record)
            guard condition.cells == cells else {
                cells = condition.cells
                return condition
            }
            return PostgresCondition(
                table: condition.table, expression: condition.expression, sources: condition.sources, cells: cells)
        }
    }

    /// What some groups are to get now, and what the others get later.
    ///
    /// - Parameter waits: whether a group has to wait; one with a condition that is undecided does in any case.
    package func split(where waits: (Int) -> Bool) -> (now: [Delivery], later: Matches) {
        let unsure = Set(groupsOfUndecided)
        var later = Matches()
        var now: [Delivery] = []
        for delivery in deliveries {
            if unsure.contains(delivery.group) || waits(delivery.group) {
                later.deliveries.append(delivery)
            } else {
                now.append(delivery)
            }
        }
        later.undecided = undecided
        later.record = record
        return (now, later)
    }

    /// The groups that something is undecided for. A group may come more than once, but not for each of its bindings where
    /// these stand together, as they mostly do.
    package var groupsOfUndecided: [Int] {
        var groups: [Int] = []
        for candidate in undecided where candidate.group != groups.last { groups.append(candidate.group) }
        return groups
    }

    /// Drops what is undecided for some groups. What is certain stays, and so does what is bound again in a moment.
    package mutating func give(up groups: Set<Int>) {
        undecided.removeAll { $0.isLasting && groups.contains($0.group) }
    }

    /// The deliveries when the conditions of `undecided` have been answered, in their order.
    package func settled(by answers: [Bool]) -> [Delivery] {
        if undecided.isEmpty { return deliveries }
        var merged = DeliveryMerge(deliveries)
        for (candidate, isMet) in zip(undecided, answers) where isMet {
            merged.add(candidate.id, to: candidate.group, candidate.selection)
        }
        return merged.deliveries
    }
}

/// Joins what several bindings of a group want into one delivery for each selection of columns.
struct DeliveryMerge {
    private struct Key: Hashable {
        let group: Int
        let selection: Selection?
    }

    private(set) var deliveries: [Matches.Delivery]
    private var places: [Key: Int]

    init(_ deliveries: [Matches.Delivery] = []) {
        self.deliveries = deliveries
        places = Dictionary(
            uniqueKeysWithValues: deliveries.enumerated().map { (Key(group: $1.group, selection: $1.selection), $0) })
    }

    mutating func add(_ id: Int, to group: Int, _ selection: Selection?) {
        let key = Key(group: group, selection: selection)
        guard let place = places[key] else {
            places[key] = deliveries.count
            deliveries.append(Matches.Delivery(group: group, selection: selection, ids: [id]))
            return
        }
        let at = deliveries[place].ids.firstIndex { $0 >= id } ?? deliveries[place].ids.count
        if at < deliveries[place].ids.count, deliveries[place].ids[at] == id { return }
        deliveries[place].ids.insert(id, at: at)
    }
}

/// Counts what Postgres has to decide for whom, to find whose filters end where it is too much.
package struct UndecidedCount {
    private struct Share {
        var questions = 0
        var bindings: Set<Int> = []
    }

    /// What each group asks, by the group's number.
    private var shares: [Int: Share] = [:]
    private var questions = 0

    package init() {}

    /// What is bound again in a moment is no subscriber's fault, and does not count.
    package mutating func count(_ matches: Matches) {
        var group: Int?
        var share = Share()
        for candidate in matches.undecided where candidate.isLasting {
            if candidate.group != group {
                if let group { shares[group] = share }
                share = shares[candidate.group] ?? Share()
                group = candidate.group
            }
            share.questions += 1
            share.bindings.insert(candidate.id)
            questions += 1
        }
        if let group { shares[group] = share }
    }

    /// Which bindings have to end so that no more than `most` questions are left: all of the group that asks most for each of
    /// its members, then of the next; among equals the newest, which has the highest number.
    package func excess(over most: Int, members: (Int) -> Int) -> [Int: Set<Int>] {
        guard questions > most else { return [:] }
        let order = shares.map { (weight: Double($1.questions) / Double(max(1, members($0))), group: $0) }.sorted(by: >)
        var left = questions
        var excess: [Int: Set<Int>] = [:]
        for (_, group) in order where left > most {
            guard let share = shares[group] else { continue }
            excess[group] = share.bindings
            left -= share.questions
        }
        return excess
    }
}
