package import Hub
package import Matching
import Postgres
package import Wire

/// Changes without known recipients, because a policy failed: they are judged again until it works.
///
/// - A member for which one change waits gets no later change first: the feed's order is kept.
/// - A change that cannot be decided within `patience` is hidden, because one row that a policy always fails on must not
///   silence its users for good. After that, for the time `resignation`, failures for that table and role are hidden at
///   once.
/// - An error about values may be due to the row or to a user's claims. So a row is hidden as soon as its user is shown
///   another row of the table while this one still fails, and resignation then applies to that user alone.
/// - A policy that waits for a lock has not failed: each change waits for `patience`, and nothing is resigned. Users with
///   hidden changes are told so, and also when that is over (`PolicyEnding`).
/// - No change waits for a recovering member: its recovery ends, and begins again when its client has joined again.
/// - While anything waits, no mark counts as covered, so a client that loses its connection meanwhile misses nothing.
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
        /// The cursor of a client that has the change.
        let cursor: String
        let since: Instant
        var members: Set<Member>

        var isHopelessAt: Instant { since + PostponedChanges.patience }
    }

    private struct TableRole: Hashable {
        let table: UInt32
        let role: Name
        /// The user, if the errors are about values.
        var reader: Claims?
    }

    /// A change that a recovery could not deliver.
    private struct MissedChange: Hashable {
        let policies: TableRole
        let id: Int64
    }

    package static let patience = Duration.seconds(10)
    package static let resignation = Duration.seconds(300)
    private static let pause = Duration.milliseconds(500)
    /// Above this count, the change that has waited longest is hidden.
    private static let mostItems = 10_000

    private(set) var items: [Item] = []
    /// Number of waiting changes for each member.
    private var waiting: [Member: Int] = [:]
    private var resigned: [TableRole: Instant] = [:]
    private var retryAt: Instant?
    /// Since when a policy has failed on changes that members missed.
    private var missed: [MissedChange: Instant] = [:]

    package init() {}

    package var isEmpty: Bool { items.isEmpty }

    /// True if something waits for the member, so that later changes have to wait, too.
    package func isBehind(_ member: Member) -> Bool { !waiting.isEmpty && waiting[member] != nil }

    /// True if something waits for members of the group that arrived by a moment.
    func holds(anythingFor group: ChangeGroupID, until moment: Instant) -> Bool {
        items.contains { $0.since <= moment && $0.members.contains { $0.group == group } }
    }

    /// True if a failure of the table's policies for the role is worth waiting for.
    ///
    /// - Parameter reader: the user, if the error is about values.
    package func isWorthWaiting(_ table: UInt32, _ role: Name, _ reader: Claims? = nil, at now: Instant) -> Bool {
        if resigned.isEmpty { return true }
        func isOver(_ policies: TableRole) -> Bool { resigned[policies].map { $0 <= now } ?? true }
        return isOver(TableRole(table: table, role: role))
            && (reader == nil || isOver(TableRole(table: table, role: role, reader: reader)))
    }

    /// Adds a change that waits for these members from `now` on.
    package mutating func addChange(_ change: RowChange, cursor: String, for members: Set<Member>, at now: Instant) {
        guard !members.isEmpty else { return }
        if items.isEmpty { retryAt = now + Self.pause }
        items.append(Item(change: change, cursor: cursor, since: now, members: members))
        for member in members { waiting[member, default: 0] += 1 }
        while items.count > Self.mostItems { releaseMembers(items.removeFirst().members) }
    }

    /// True if the items must be judged again; then the next time is a pause away.
    package mutating func isDue(at now: Instant) -> Bool {
        guard !items.isEmpty, let due = retryAt, now >= due else { return false }
        retryAt = now + Self.pause
        return true
    }

    /// The waiting members of each group.
    ///
    /// - Parameter before: the members that waited until now.
    static func waits(of members: Set<Member>, before: Set<Member> = []) -> [MessageWait] {
        let waiting = Dictionary(grouping: members, by: \.group).mapValues { $0.map(\.claims) }
        return Set(before.lazy.map(\.group)).union(waiting.keys).map { group in
            MessageWait(group: group, readers: waiting[group].map { .bearers($0) })
        }
    }

    /// Takes the results of another judgement: for each item, in order, the members that it still waits for.
    package mutating func updateMembers(_ left: [Set<Member>]) {
        for index in items.indices.reversed() where left.indices.contains(index) {
            releaseMembers(items[index].members.subtracting(left[index]))
            items[index].members = left[index]
            if left[index].isEmpty { items.remove(at: index) }
        }
    }

    /// True if a recovery has to end because a policy failed on a change: its client joins again, and gets the change then.
    ///
    /// If the same change fails for longer than `patience`, the hub resigns: one row that a policy always fails on must not
    /// keep its users from ever catching up.
    package mutating func endsRecovery(
        _ change: Int64, of table: UInt32, _ role: Name, _ reader: Claims? = nil, at now: Instant
    ) -> Bool {
        guard isWorthWaiting(table, role, reader, at: now) else { return false }
        let key = MissedChange(policies: TableRole(table: table, role: role, reader: reader), id: change)
        // An older failure is a different one: no policy was asked in between.
        if let since = missed[key], now < since + Self.resignation {
            guard now >= since + Self.patience else { return true }
            resignPolicies(table, role, reader, at: now)
            return false
        }
        if missed.count >= Self.mostItems { missed.removeAll() }
        missed[key] = now
        return true
    }

    /// Ends the patience with a table's policies for a role; with a user given, for that user alone.
    package mutating func resignPolicies(_ table: UInt32, _ role: Name, _ reader: Claims? = nil, at now: Instant) {
        resigned = resigned.filter { $0.value > now }
        if resigned.count >= Self.mostItems { resigned.removeAll() }
        let policies = TableRole(table: table, role: role, reader: reader)
        resigned[policies] = now + Self.resignation
        missed = missed.filter { $0.key.policies != policies }
    }

    private mutating func releaseMembers(_ members: Set<Member>) {
        for member in members {
            guard let count = waiting[member] else { continue }
            waiting[member] = count > 1 ? count - 1 : nil
        }
    }
}
