package import Hub
package import Matching
import Postgres
package import Wire

/// Changes whose readers are not known, as a policy failed: they are judged again until it works.
///
/// - A member for whom one change waits gets none of the later ones before it: its order is that of the feed.
/// - What cannot be decided within `patience` is hidden, as one row that a policy always fails on must not silence its
///   readers for good. From then on, for `resignation`, what fails for that table and role is hidden at once.
/// - An error about values may lie in the row, or in a user's claims. So a row is hidden as soon as its reader is shown another
///   one of the table while this one still fails, and resigned is for that reader alone.
/// - A lock that a policy waits for is no failure: each change waits for `patience`, and nothing is resigned. Whoever is hidden some
///   is told so, and that it is over (`PolicyEnding`).
/// - Nothing waits for a member that recovers: its recovery ends, and begins again when its client has joined again.
/// - While anything waits, no mark is told to be covered, so whoever loses its connection meanwhile misses nothing.
/// - Confined to the feed's thread. Time is passed in.
package struct PostponedChanges {
    package typealias Instant = ContinuousClock.Instant

    /// Some of a group's members: those with the same claims.
    package struct Member: Hashable {
        let group: ChangeGroupID
        let claims: Claims

        package init(group: ChangeGroupID, claims: Claims) {
            self.group = group
            self.claims = claims
        }
    }

    struct Item {
        let change: RowChange
        /// What tells a client where it is that has the change.
        let cursor: String
        let since: Instant
        var members: Set<Member>

        var isHopelessAt: Instant { since + PostponedChanges.patience }
    }

    private struct TableRole: Hashable {
        let table: UInt32
        let role: Name
        /// Where the errors are about values: of whom the role is.
        var reader: Claims?
    }

    /// What a recovery could not be told of.
    private struct MissedChange: Hashable {
        let policies: TableRole
        let id: Int64
    }

    package static let patience = Duration.seconds(10)
    package static let resignation = Duration.seconds(300)
    private static let pause = Duration.milliseconds(500)
    /// Beyond it what waits longest is hidden.
    private static let mostItems = 10_000

    private(set) var items: [Item] = []
    /// How many changes wait for each member.
    private var waiting: [Member: Int] = [:]
    private var resigned: [TableRole: Instant] = [:]
    private var retryAt: Instant?
    /// Since when a policy fails on changes that members missed.
    private var missed: [MissedChange: Instant] = [:]

    package init() {}

    package var isEmpty: Bool { items.isEmpty }

    /// Something waits for the member, so what comes now has to wait, too.
    package func isBehind(_ member: Member) -> Bool { !waiting.isEmpty && waiting[member] != nil }

    /// Whether anything waits for members of the group that came by a moment.
    func holds(anythingFor group: ChangeGroupID, until moment: Instant) -> Bool {
        items.contains { $0.since <= moment && $0.members.contains { $0.group == group } }
    }

    /// Whether what a policy of the table fails on for the role is worth waiting for.
    ///
    /// - Parameter reader: whose row it is, where the error is about values.
    package func isWorthWaiting(_ table: UInt32, _ role: Name, _ reader: Claims? = nil, at now: Instant) -> Bool {
        if resigned.isEmpty { return true }
        func isOver(_ policies: TableRole) -> Bool { resigned[policies].map { $0 <= now } ?? true }
        return isOver(TableRole(table: table, role: role))
            && (reader == nil || isOver(TableRole(table: table, role: role, reader: reader)))
    }

    /// A change waits from `now` on for these members.
    package mutating func add(_ change: RowChange, cursor: String, for members: Set<Member>, at now: Instant) {
        guard !members.isEmpty else { return }
        if items.isEmpty { retryAt = now + Self.pause }
        items.append(Item(change: change, cursor: cursor, since: now, members: members))
        for member in members { waiting[member, default: 0] += 1 }
        while items.count > Self.mostItems { forget(items.removeFirst().members) }
    }

    /// Whether the items are to be judged again; if so, the next time is a pause away.
    package mutating func isDue(at now: Instant) -> Bool {
        guard !items.isEmpty, let due = retryAt, now >= due else { return false }
        retryAt = now + Self.pause
        return true
    }

    /// Who of each group waits.
    ///
    /// - Parameter before: who waited so far.
    static func waits(of members: Set<Member>, before: Set<Member> = []) -> [MessageWait] {
        let waiting = Dictionary(grouping: members, by: \.group).mapValues { $0.map(\.claims) }
        return Set(before.lazy.map(\.group)).union(waiting.keys).map { group in
            MessageWait(group: group, readers: waiting[group].map { .bearers($0) })
        }
    }

    /// What was judged again: for each item, in order, those for whom it waits still.
    package mutating func settle(_ left: [Set<Member>]) {
        for index in items.indices.reversed() where left.indices.contains(index) {
            forget(items[index].members.subtracting(left[index]))
            items[index].members = left[index]
            if left[index].isEmpty { items.remove(at: index) }
        }
    }

    /// Whether a recovery has to end because a policy failed on a change: its client joins again, and is told then.
    ///
    /// Where the same change fails for longer than `patience`, the hub resigns: one row that a policy always fails on must
    /// not keep its readers from ever catching up.
    package mutating func endsRecovery(
        _ change: Int64, of table: UInt32, _ role: Name, _ reader: Claims? = nil, at now: Instant
    ) -> Bool {
        guard isWorthWaiting(table, role, reader, at: now) else { return false }
        let key = MissedChange(policies: TableRole(table: table, role: role, reader: reader), id: change)
        // An older failure is another one: nobody asked in between.
        if let since = missed[key], now < since + Self.resignation {
            guard now >= since + Self.patience else { return true }
            resign(table, role, reader, at: now)
            return false
        }
        if missed.count >= Self.mostItems { missed.removeAll() }
        missed[key] = now
        return true
    }

    /// The patience with a table's policies for a role is over; with those of whom it is, where a reader is named.
    package mutating func resign(_ table: UInt32, _ role: Name, _ reader: Claims? = nil, at now: Instant) {
        resigned = resigned.filter { $0.value > now }
        if resigned.count >= Self.mostItems { resigned.removeAll() }
        let policies = TableRole(table: table, role: role, reader: reader)
        resigned[policies] = now + Self.resignation
        missed = missed.filter { $0.key.policies != policies }
    }

    private mutating func forget(_ members: Set<Member>) {
        for member in members {
            guard let count = waiting[member] else { continue }
            waiting[member] = count > 1 ? count - 1 : nil
        }
    }
}
