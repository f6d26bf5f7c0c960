import Hub
import Matching

/// Changes that wait until Postgres has decided filters, in the order of their arrival.
///
/// - Only their own definitions wait for them. A definition for which one change waits gets no later change first: the
///   feed's order is kept.
/// - They are meant for the groups that existed when they arrived: to later groups they belong to the past.
/// - A mark covers a waiting change only after its delivery, so a client that loses its connection meanwhile misses
///   nothing.
/// - Confined to the feed's thread. Time is passed in.
struct UndecidedChanges {
    struct Item {
        let change: RowChange
        /// The cursor of a client that has the change.
        let cursor: String
        /// The matches of waiting definitions only.
        var matches: Matches
        /// The groups of those definitions.
        let groups: [Int: Set<ChangeGroupID>]
        let since: ContinuousClock.Instant

        var definitions: Set<Int> { Set(groups.keys) }

        /// The groups that wait for the change, and the end of their wait.
        var waits: [MessageWait] { groups.values.joined().map { MessageWait(group: $0, readers: .everybody) } }
        var ends: [MessageWait] { groups.values.joined().map { MessageWait(group: $0, readers: nil) } }

        /// The cursor of a client that has everything before this change; nil if its cursor is too long to be read.
        var before: FeedCursor? {
            FeedCursor(cursor).map {
                FeedCursor(epoch: $0.epoch, seen: $0.seen, window: $0.window, id: change.id - 1)
            }
        }
    }

    /// At this limit the feed waits, but at most for `patience`; then filters end.
    private static let mostItems = 10_000
    private static let mostQuestions = 500_000
    /// Questions asked at a time, so that later changes do not wait long.
    private static let questionsAtATime = 4000
    /// Filters that are this far behind are more than Postgres can decide.
    private static let patience = Duration.seconds(1)

    private var items: [Item] = []
    private var questions = 0
    /// Number of the first items that are being decided.
    private var asked = 0
    /// Number of waiting changes for each definition.
    private var waiting: [Int: Int] = [:]
    /// Total number of changes ever added, and how many of them are delivered.
    private var added = 0
    private var settled = 0
    /// Marks, with the total number of changes that each covers.
    private var marks: [(mark: Int, added: Int)] = []

    var count: Int { items.count }
    var isFull: Bool { items.count >= Self.mostItems || questions >= Self.mostQuestions }
    var isEmpty: Bool { items.isEmpty }

    /// True if something waits for the definition, so that later changes have to wait, too.
    func isBehind(_ definition: Int) -> Bool { waiting[definition] != nil }

    /// True if something waits for the group that arrived by a moment.
    func holds(anythingFor group: ChangeGroupID, until moment: ContinuousClock.Instant) -> Bool {
        items.contains { $0.since <= moment && $0.groups.values.contains { $0.contains(group) } }
    }

    /// The first waiting change of each of these groups, if any.
    func first(for groups: Set<ChangeGroupID>) -> [ChangeGroupID: Item] {
        var first: [ChangeGroupID: Item] = [:]
        var left = groups
        for item in items {
            if left.isEmpty { break }
            for members in item.groups.values where !members.isDisjoint(with: left) {
                for group in members.intersection(left) { first[group] = item }
                left.subtract(members)
            }
        }
        return first
    }

    mutating func addItems(_ new: [Item]) {
        items += new
        added += new.count
        for item in new {
            questions += item.matches.undecided.count
            for definition in item.definitions { waiting[definition, default: 0] += 1 }
        }
    }

    /// Takes the first waiting items, to be decided together.
    mutating func takeNext(at now: ContinuousClock.Instant) -> [Item] {
        // One statement for many rows costs Postgres less than many statements, which helps it catch up.
        let most = isOverdue(at: now) ? 10 * Self.questionsAtATime : Self.questionsAtATime
        var count = 0
        asked = 0
        for item in items {
            count += item.matches.undecided.count
            if asked > 0, count > most { break }
            asked += 1
        }
        return Array(items.prefix(asked))
    }

    func isOverdue(at now: ContinuousClock.Instant) -> Bool { patience(at: now) <= .zero }

    /// Time that the first item may still wait before filters are more than Postgres can decide.
    func patience(at now: ContinuousClock.Instant) -> Duration {
        items.first.map { $0.since + Self.patience - now } ?? Self.patience
    }

    // MARK: Overload

    /// The questions that Postgres has to decide.
    var tally: UndecidedCount {
        var tally = UndecidedCount()
        for item in items { tally.countUndecided(item.matches) }
        return tally
    }

    /// Number of questions that may be left when too many wait: half, so that the limit is not reached again at once.
    var mostLeft: Int { questions / 2 }

    /// Drops the questions of definitions whose filters ended, and counts no item as asked. Certain deliveries keep their
    /// place.
    mutating func give(up definitions: Set<Int>) {
        returnTaken()
        for place in items.indices {
            let before = items[place].matches.undecided.count
            items[place].matches.give(up: definitions)
            questions -= before - items[place].matches.undecided.count
        }
    }

    /// Takes the first items that no longer wait for a decision, to be delivered.
    mutating func takeCertain() -> [Item] {
        let certain = items.prefix { $0.matches.undecided.isEmpty }
        asked = certain.count
        return Array(certain)
    }

    /// The items that were taken keep waiting.
    mutating func returnTaken() { asked = 0 }

    /// The items that were taken are delivered.
    ///
    /// - Returns: the newest mark that is now covered; nil if there is none.
    mutating func finishTaken() -> Int? {
        for item in items.prefix(asked) {
            questions -= item.matches.undecided.count
            for definition in item.definitions {
                guard let count = waiting[definition] else { continue }
                waiting[definition] = count > 1 ? count - 1 : nil
            }
        }
        items.removeFirst(asked)
        settled += asked
        asked = 0
        let covered = marks.prefix { $0.added <= settled }
        marks.removeFirst(covered.count)
        return covered.last?.mark
    }

    /// Holds a mark that covers everything here.
    mutating func holdMark(_ mark: Int) {
        if marks.last?.added == added { marks.removeLast() }
        marks.append((mark, added))
    }
}
