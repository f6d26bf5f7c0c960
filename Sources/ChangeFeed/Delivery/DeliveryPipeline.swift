import Hub
import Logging
import Matching
import Synchronization
import Wire

/// The steps of every batch after matching, live or missed: policies decide who may see its rows, each loop's events are
/// made, and members that have to wait for a policy are recorded.
///
/// Confined to the feed's thread.
final class DeliveryPipeline {
    /// The cost of deciding who sees which rows; from any thread.
    let statistics = Mutex(VisibilityStatistics())
    var postponed = PostponedChanges()
    /// Tables whose inserts are messages with receipts (`ReceiptQuestion`), by oid.
    var messageTables: Set<UInt32> = []
    /// Tables whose rows' receipts are written back.
    var receiptTables: Set<UInt32> = []
    private var visibility: Visibility
    private var encoder = ChangeEncoder()
    private let loops: Int
    private let helpers: [PolicyHelper]

    /// - Parameter sessions: number of sessions on which policies are evaluated.
    init(conninfo: String, sessions: Int, loops: Int, logger: Logger) {
        self.loops = loops
        helpers = (1..<max(sessions, 1)).map { _ in PolicyHelper(conninfo: conninfo, logger: logger) }
        visibility = Visibility(conninfo: conninfo, helpers: helpers, logger: logger)
    }

    /// Ends the threads that evaluate policies, after the feed's thread. From any thread.
    func stop() { for helper in helpers { helper.stop() } }

    func catalogChanged(_ catalog: Catalog) { visibility.catalogChanged(catalog) }

    func membersChanged(_ changes: [MemberChange]) { visibility.membersChanged(changes) }

    /// Asks the policies about every row and every user whose filters it matched.
    ///
    /// - Throws: `PostgresError` if the database does not answer.
    func judgeBatch(_ batch: inout DeliveryBatch, for registry: borrowing SubscriptionRegistry) throws {
        try batch.judgeRows(for: registry, by: &visibility)
        let decided = visibility.statistics
        statistics.withLock { $0 = decided }
    }

    /// Each loop's complaints to users who are shown nothing of a table for a while.
    func complaints(in registry: borrowing SubscriptionRegistry) -> [[FeedEvent]] {
        var events = [[FeedEvent]](repeating: [], count: loops)
        for ending in visibility.takeEndings() {
            for group in registry.groups(of: ending.claims, as: ending.role, hearing: ending.table) {
                events[group.loop].append(ending.event(in: group, for: ending.reason.duration))
            }
        }
        return events
    }

    /// The complaints to a user who joins a group with these claims and is known to be shown nothing of a table.
    func complaints(
        about claims: Claims, in group: ChangeGroupID, of registry: borrowing SubscriptionRegistry
    ) -> [FeedEvent] {
        guard let role = registry.definition(of: group)?.role else { return [] }
        return visibility.endings(for: claims, as: role, at: .now).compactMap { ending, left in
            let groups = registry.groups(of: claims, as: role, hearing: ending.table)
            return groups.contains(group) ? ending.event(in: group, for: left) : nil
        }
    }

    /// Each loop's events, in the order of the batch's entries.
    func events(of batch: inout DeliveryBatch, for registry: borrowing SubscriptionRegistry) -> [[FeedEvent]] {
        (batch.messageTables, batch.receiptTables) = (messageTables, receiptTables)
        return batch.events(for: registry, loops: loops, encodingWith: &encoder, beside: &postponed)
    }

    /// Tells the loops, after their events, for whom a message now waits, so that it does not count as not sent
    /// (`Receipts`).
    func tellWaits(of change: RowChange, _ waits: [MessageWait], to events: inout [[FeedEvent]]) {
        guard change.operation == .insert, messageTables.contains(change.table.oid) else { return }
        for (loop, waits) in Dictionary(grouping: waits, by: \.group.loop) {
            events[loop].append(.messageWaits(change.id, waits))
        }
    }
}

/// The last step of a batch: each loop's events and their recipients, and the members that have to wait.
extension DeliveryBatch {
    /// Each loop's events, in the order of the entries.
    mutating func events(
        for registry: borrowing SubscriptionRegistry, loops: Int, encodingWith encoder: inout ChangeEncoder,
        beside postponement: inout PostponedChanges
    ) -> [[FeedEvent]] {
        var events = [[FeedEvent]](repeating: [], count: loops)
        for (place, entry) in entries.enumerated() {
            switch entry {
            case .notification: continue
            case .broadcast(let message):
                for loop in events.indices { events[loop].append(.broadcast(message)) }
            case .change:
                guard let match = matches[place] else { continue }
                var encoded = EncodedViews(match.change)
                for delivery in match.deliveries {
                    guard let definition = registry.definition(delivery.group) else { continue }
                    appendEvents(
                        delivery, of: match, to: definition, registry, &encoded, &encoder, &events, &postponement)
                }
            }
        }
        return events
    }

    private mutating func appendEvents(
        _ delivery: Matches.Delivery, of match: Match, to definition: SubscriptionDefinition,
        _ registry: borrowing SubscriptionRegistry,
        _ encoded: inout EncodedViews, _ encoder: inout ChangeEncoder, _ events: inout [[FeedEvent]],
        _ postponement: inout PostponedChanges
    ) {
        let change = match.change
        guard let access = catalog.access(of: definition.role)?.table(change.table.oid) else { return }
        let audience = audience
        func appendChange(_ group: ChangeGroupID, _ recipients: ChangeDelivery.Recipients, _ old: ChangeView.OldRecord)
        {
            let view = ChangeView(selection: delivery.selection, granted: access.columns, oldRecord: old)
            let data = encoded.encodeView(view, with: &encoder)
            let event = ChangeDelivery(
                group: group, operation: change.operation, ids: delivery.ids, data: data, recipients: recipients,
                cursor: audience.cursor(for: group, at: match.place) ?? encoded.cursor(in: audience.cursors),
                committedAtMicroseconds: audience.isMeasured ? change.committedAtMicroseconds : nil,
                message: change.operation == .insert && messageTables.contains(change.table.oid) ? change.id : nil,
                receipt: receiptTables.isEmpty ? nil : encoded.receipt(in: receiptTables))
            events[group.loop].append(.change(event))
        }
        guard access.isRestricted, !match.isKeyAlone else {
            let isBare = access.isRestricted
            for (group, principals) in definition.groups
            where audience.includes(group, of: definition, at: match.place) {
                let recipients = recipients(of: match.place, in: group, principals, postponement)
                if let recipients { appendChange(group, recipients, isBare ? .primaryKey : .replicaIdentity) }
            }
            return
        }
        guard let verdict = visible.verdict(on: match, for: definition.role) else { return }
        for (group, principals) in definition.groups where audience.includes(group, of: definition, at: match.place) {
            var whole: [Claims] = []
            var bare: [Claims] = []
            for principal in principals.values {
                let member = PostponedChanges.Member(group: group, claims: principal.claims)
                guard audience.includes(member, at: match.place) else { continue }
                let failure = failure(of: verdict, for: principal, match, definition.role, registry, &postponement)
                if mustWait(member, failure, match, definition.role, &postponement) { continue }
                guard verdict.sees(principal) else { continue }
                if verdict.seesOld(principal) {
                    whole.append(principal.claims)
                } else {
                    bare.append(principal.claims)
                }
            }
            if !whole.isEmpty { appendChange(group, .bearers(whole), .replicaIdentity) }
            if !bare.isEmpty { appendChange(group, .bearers(bare), .primaryKey) }
        }
    }

    // MARK: Waiting for policies

    /// The recipients in a group of a change that no policy decides; nil for none. The change also waits for members that
    /// wait.
    private mutating func recipients(
        of place: Int, in group: ChangeGroupID, _ principals: [Claims: Principal],
        _ postponement: PostponedChanges
    ) -> ChangeDelivery.Recipients? {
        // Members that are not known yet, because their claims were not admitted, wait for nothing.
        let audience = audience
        let isRetried: Bool
        switch audience {
        case .recovering: return .everybody
        case .postponed: isRetried = true
        case .everybody, .decided:
            if postponement.isEmpty, behind.isEmpty { return .everybody }
            isRetried = false
        }
        var present: [Claims] = []
        var isWhole = !isRetried
        for claims in principals.keys {
            let member = PostponedChanges.Member(group: group, claims: claims)
            guard audience.includes(member, at: place) else { continue }
            if behind.contains(member) || !isRetried && postponement.isBehind(member) {
                postponed[place, default: []].insert(member)
                isWhole = false
            } else {
                present.append(claims)
            }
        }
        if isWhole { return .everybody }
        return present.isEmpty ? nil : .bearers(present)
    }

    /// The way in which a policy failed on a row.
    private enum RowFailure {
        case none
        /// Whatever the row is.
        case ofPolicy
        /// By an error about values.
        case ofData
        /// By waiting for a lock.
        case ofLock
    }

    /// The way in which a policy failed on a row for a user.
    ///
    /// An error about values is due to the claims if the policies succeed for another user of the role: it will recur. It is
    /// due to the row if it recurs while the user is shown another row of the table. Such a row is hidden.
    private mutating func failure(
        of verdict: BatchVisibility.Verdict, for principal: Principal, _ match: Match, _ role: Name,
        _ registry: borrowing SubscriptionRegistry, _ postponement: inout PostponedChanges
    ) -> RowFailure {
        guard verdict.isUndecided(principal) else { return .none }
        if verdict.isLocked(principal) { return .ofLock }
        guard verdict.isOfData(principal) else { return .ofPolicy }
        let table = match.change.table.oid
        let audience = audience
        switch audience {
        case .everybody, .decided: break
        case .postponed, .recovering:
            if arePoliciesWorking(of: table, for: principal.claims, role, in: registry) { return .none }
        }
        guard arePoliciesWorking(of: table, for: nil, role, in: registry) else { return .ofData }
        postponement.resignPolicies(table, role, principal.claims, at: now)
        return .none
    }

    /// True if a member has to wait for a change, because a policy failed on it or an earlier change waits.
    private mutating func mustWait(
        _ member: PostponedChanges.Member, _ failure: RowFailure, _ match: Match, _ role: Name,
        _ postponement: inout PostponedChanges
    ) -> Bool {
        let table = match.change.table.oid
        let isUndecided = failure != .none
        let reader = failure == .ofData ? member.claims : nil
        var waits = behind.contains(member)
        var hopelessAt: ContinuousClock.Instant?
        let audience = audience
        switch audience {
        case .recovering:
            // No change waits for a recovering member: its recovery ends instead.
            if failed.contains(member.group) { return true }
            guard isUndecided, postponement.endsRecovery(match.change.id, of: table, role, reader, at: now) else {
                return false
            }
            failed.insert(member.group)
            return true
        case .postponed(let items): hopelessAt = items[match.place].isHopelessAt
        case .everybody, .decided: waits = waits || postponement.isBehind(member)
        }
        if failure == .ofLock, !waits {
            // Each change has its own time limit: a user who is told that changes were hidden loads its data when the lock
            // is gone, and must get what commits then.
            waits = hopelessAt.map { now < $0 } ?? true
        } else if isUndecided, !waits {
            waits = postponement.isWorthWaiting(table, role, reader, at: now)
            if let hopelessAt, now >= hopelessAt {
                postponement.resignPolicies(table, role, reader, at: now)
                waits = false
            }
        }
        guard waits else { return false }
        behind.insert(member)
        postponed[match.place, default: []].insert(member)
        return true
    }
}

/// The encodings of one change; nearly always there is only one view, so a list is the fastest store.
private struct EncodedViews {
    private let change: RowChange
    private var known: [(view: ChangeView, data: [UInt8])] = []
    private var cursor: String?
    private var receipt: ReceiptRow??

    init(_ change: RowChange) {
        self.change = change
    }

    mutating func cursor(in window: CursorWindow?) -> String {
        if let cursor { return cursor }
        let made = window?.cursorText(change.id) ?? ""
        cursor = made
        return made
    }

    /// - Parameter tables: tables whose rows' receipts are written back.
    mutating func receipt(in tables: Set<UInt32>) -> ReceiptRow? {
        if let receipt { return receipt }
        let made = change.operation == .insert && tables.contains(change.table.oid) ? change.receiptRow : nil
        receipt = .some(made)
        return made
    }

    mutating func encodeView(_ view: ChangeView, with encoder: inout ChangeEncoder) -> [UInt8] {
        if let known = known.first(where: { $0.view == view }) { return known.data }
        let data = encoder.encodeData(for: change, view: view)
        known.append((view, data))
        return data
    }
}

extension RowChange {
    fileprivate var receiptRow: ReceiptRow? {
        record.flatMap {
            ReceiptTables.row(
                schema: table.schema, table: table.name, key: table.primaryKey, in: JSON(trusted: $0[...]))
        }
    }
}

extension Table {
    /// The columns of the primary key.
    var primaryKey: [Name] { columns.filter(\.isPrimaryKey).map(\.name) }
}
