import Hub
import Matching

/// Changes that wait until Postgres has decided filters, in the order in which they came.
///
/// - Nobody else waits for them. A definition for which one change waits gets none of the later ones before it: its order
///   is that of the feed.
/// - They are meant for the groups that were there when they came: to whoever comes later they are of the past.
/// - A mark covers what waits only when that was delivered, so whoever loses its connection meanwhile misses nothing.
/// - Confined to the feed's thread. Time is passed in.
struct UndecidedChanges {
    struct Item {
        let change: RowChange
        /// What tells a client where it is that has the change.
        let cursor: String
        /// Of the definitions that wait, no others.
        var matches: Matches
        /// Who was in those definitions.
        let groups: [Int: Set<ChangeGroupID>]
        let since: ContinuousClock.Instant

        var definitions: Set<Int> { Set(groups.keys) }

        /// Who waits for it, and that they wait no more.
        var waits: [MessageWait] { groups.values.joined().map { MessageWait(group: $0, readers: .everybody) } }
        var ends: [MessageWait] { groups.values.joined().map { MessageWait(group: $0, readers: nil) } }

        /// What somebody has that has all that came before this change; nil where its cursor is too long to be read.
        var before: FeedCursor? {
            FeedCursor(cursor).map {
                FeedCursor(epoch: $0.epoch, seen: $0.seen, window: $0.window, id: change.id - 1)
            }
        }
    }

    /// Beyond it the feed waits, but for `patience` at most; then filters end.
    private static let mostItems = 10_000
    private static let mostQuestions = 500_000
    /// Asked at a time, so that what comes meanwhile does not wait long.
    private static let questionsAtATime = 4000
    /// Filters that are this far behind are more than Postgres can decide.
    private static let patience = Duration.seconds(1)

    private var items: [Item] = []
    private var questions = 0
    /// How many of the first are being decided.
    private var asked = 0
    /// How many changes wait for each definition.
    private var waiting: [Int: Int] = [:]
    /// How many there ever were, and how many of them are delivered.
    private var added = 0
    private var settled = 0
    /// Marks that cover so many of all there ever were.
    private var marks: [(mark: Int, added: Int)] = []

    var count: Int { items.count }
    var isFull: Bool { items.count >= Self.mostItems || questions >= Self.mostQuestions }
    var isEmpty: Bool { items.isEmpty }

    /// Something waits for the definition, so what comes now has to wait, too.
    func isBehind(_ definition: Int) -> Bool { waiting[definition] != nil }

    /// Whether anything waits for the group that came by a moment.
    func holds(anythingFor group: ChangeGroupID, until moment: ContinuousClock.Instant) -> Bool {
        items.contains { $0.since <= moment && $0.groups.values.contains { $0.contains(group) } }
    }

    /// The first change that waits for each of these groups, where one does.
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

    mutating func add(_ new: [Item]) {
        items += new
        added += new.count
        for item in new {
            questions += item.matches.undecided.count
            for definition in item.definitions { waiting[definition, default: 0] += 1 }
        }
    }

    /// The first that wait, to be decided together.
    mutating func takeNext(at now: ContinuousClock.Instant) -> [Item] {
        // One statement for many rows costs Postgres less than many: who is behind catches up by that.
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

    /// How long the first that waits may wait before filters are more than Postgres can decide.
    func patience(at now: ContinuousClock.Instant) -> Duration {
        items.first.map { $0.since + Self.patience - now } ?? Self.patience
    }

    // MARK: Too much

    /// What Postgres has to decide.
    var tally: UndecidedCount {
        var tally = UndecidedCount()
        for item in items { tally.count(item.matches) }
        return tally
    }

    /// How many questions may be left where too many wait: half, so that it is not the same again in a moment.
    var mostLeft: Int { questions / 2 }

    /// Asks no more for definitions whose filters ended, and counts none as asked. What they get for certain keeps its place.
    mutating func give(up definitions: Set<Int>) {
        takeBack()
        for place in items.indices {
            let before = items[place].matches.undecided.count
            items[place].matches.give(up: definitions)
            questions -= before - items[place].matches.undecided.count
        }
    }

    /// The first that wait for no decision any more, to be delivered.
    mutating func takeCertain() -> [Item] {
        let certain = items.prefix { $0.matches.undecided.isEmpty }
        asked = certain.count
        return Array(certain)
    }

    /// Those that were taken still wait.
    mutating func takeBack() { asked = 0 }

    /// Those that were taken are delivered.
    ///
    /// - Returns: the newest mark that covers no other; nil where there is none.
    mutating func settle() -> Int? {
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

    /// A mark that covers all that is here.
    mutating func hold(_ mark: Int) {
        if marks.last?.added == added { marks.removeLast() }
        marks.append((mark, added))
    }
}
