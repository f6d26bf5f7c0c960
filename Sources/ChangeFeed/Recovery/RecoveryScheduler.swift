import Hub
import Matching
import Postgres

/// The members that are sent missed changes: who they are, how far they have come, and which part of a read is for whom.
///
/// Confined to the feed's thread. The scheduler reads nothing; the feed's session does (`RecoveryReader`). A member is in
/// one of four places: it has just arrived; it waits for a *slice*, which reads so little that the feed does it between two
/// windows, and which ends at the present; it lacked too much for a slice, and waits for a *scan*, which runs beside the
/// feed; or it already has the changes that others wait for until Postgres has decided filters. After a scan, a slice has
/// the rest.
///
/// Reads are shared: one serves all waiting members.
///
/// Unchecked: confined to the feed's thread, like everything it consists of.
package final class RecoveryScheduler: @unchecked Sendable {
    private let subscriptions: LiveSubscriptions
    private let pipeline: DeliveryPipeline
    private let undecided: DecisionQueue
    let sink: any ChangeSink
    let inbox: FeedInbox
    let rowReader: RowReader
    private var registry: SubscriptionRegistry
    private var members: [ChangeGroupID: RecoveryMember] = [:]
    private(set) var newcomers: [RecoveryMember] = []
    private var near: [RecoveryMember] = []
    private var far: [RecoveryMember] = []
    /// Members that already have a change which still waits for filters of their group, and must not get it live again.
    private var ahead: [RecoveryMember] = []
    private var unbound: [Int] = []
    /// Members per slice; more wait for the next.
    private static let crowd = 4096
    /// Windows that a member waits for when its rows are ahead of them: one is enough, unless the rows came from another
    /// server.
    private static let mostWaits = 10
    /// Each text is searched for in every row, 0.2 µs for 600 bytes.
    private static let mostTexts = 8

    /// - Parameter undecided: changes that wait for filters of live subscribers.
    init(
        _ subscriptions: LiveSubscriptions, _ pipeline: DeliveryPipeline, _ undecided: DecisionQueue,
        principals: PrincipalTable, sink: any ChangeSink, inbox: FeedInbox, rowReader: RowReader
    ) {
        self.rowReader = rowReader
        registry = SubscriptionRegistry(principals: principals)
        self.subscriptions = subscriptions
        self.pipeline = pipeline
        self.undecided = undecided
        self.sink = sink
        self.inbox = inbox
    }

    // MARK: Members

    /// Begins to bring a member the changes of a group that it missed.
    func addMember(_ id: RecoveryID, _ question: RecoveryQuestion, _ context: FeedContext) {
        guard context.status == .ready, let wanted = subscriptions.registry.definition(of: question.group) else {
            return sink.deliverRecovery(id, [.unavailable], whenTaken: {})
        }
        let member = RecoveryMember(id, question)
        members[member.key] = member
        let subscription = ChangeSubscription(role: wanted.role, bindings: wanted.bindings, ids: wanted.ids)
        if case .needsBinding(let number) = registry.addGroup(member.key, subscription) { unbound.append(number) }
        registry.admitClaims(question.claims, to: member.key)
        if question.rows != nil, !question.from.isCursor {
            beginMember(member, with: question.rows, of: wanted, context.catalog)
        } else {
            newcomers.append(member)
        }
    }

    /// The member with this id; nil if it is gone.
    func findMember(_ id: RecoveryID) -> RecoveryMember? { members[ChangeGroupID(loop: id.loop, serial: id.serial)] }

    /// A member has the rows that it starts from, and now needs the changes after them.
    func addNewcomer(_ member: RecoveryMember) { newcomers.append(member) }

    func abandonMember(_ id: RecoveryID) { removeMember(ChangeGroupID(loop: id.loop, serial: id.serial)) }

    func batchTaken(_ id: RecoveryID) {
        members[ChangeGroupID(loop: id.loop, serial: id.serial)]?.underway -= 1
    }

    /// Ends all recoveries: the database is away, and a member's position means nothing to a server that may have lost it.
    func databaseIsAway() {
        for member in members.values {
            sink.deliverRecovery(member.id, [.unavailable], whenTaken: {})
            removeMember(member.key)
        }
    }

    func removeMember(_ key: ChangeGroupID) {
        guard let member = members.removeValue(forKey: key) else { return }
        member.isGone = true
        registry.removeGroup(key)
    }

    func catalogChanged(_ catalog: Catalog) { unbound += registry.catalogChanged(catalog) }

    /// Binds the subscriptions that are waiting for it.
    func bindPending(asking ask: @escaping SubscriptionBinder.Ask) {
        guard !unbound.isEmpty, let catalog = registry.catalog else { return }
        let binder = subscriptions.makeBinder(catalog, asking: ask)
        // A subscription that cannot be bound any more was reported to its group; its member misses nothing.
        let settled = unbound
        unbound = []
        for number in settled {
            for case (let key, .unavailable) in registry.bindDefinition(number, with: binder, isLastTry: true) ?? [] {
                // No change would be found for it, which must not look as if there were none.
                if let member = members[key] { failMembers([member]) }
            }
        }
    }

    // MARK: The way to the present

    var isEmpty: Bool { members.isEmpty }
    var hasNewcomers: Bool { newcomers.contains { !$0.isGone } }
    /// The epochs of newly arrived members' cursors.
    var epochsOfNewcomers: Set<DatabaseEpoch> {
        newcomers.reduce(into: []) { $0.formUnion($1.from.epochs) }
    }

    /// Tells newly arrived members whether they can be sent what they missed.
    ///
    /// - Parameters:
    ///   - rows: limit of rows that a slice examines; for members known to lack more, no slice is tried.
    ///   - ask: binds members that arrived since the last binding: the next read must find every member that begins.
    func beginRecoveries(on history: FeedHistory, slicesOf rows: Int, asking ask: @escaping SubscriptionBinder.Ask) {
        let came = newcomers
        newcomers = []
        bindPending(asking: ask)
        let present = FeedCursor(epoch: history.epoch, at: history.present)
        let catalog = registry.catalog ?? Catalog()
        for member in came where !member.isGone {
            switch history.findStart(from: member.from) {
            case .from(let start):
                if !member.hasBegun { sink.deliverRecovery(member.id, [.began(.resumed)], whenTaken: {}) }
                member.hasBegun = true
                if !member.hasRows, let fresh = member.question.rows?.fresh {
                    readRows(fresh, for: member, catalog)
                    continue
                }
                member.moveTo(start)
            case .refused(.ahead, _) where member.hasBegun && member.waits < Self.mostWaits:
                // Its rows were read during this window; the next one sees as much as they do.
                member.waits += 1
                newcomers.append(member)
                continue
            case .refused where member.hasBegun:
                // Changes of tables other than those of its rows are lost. If even the rows' own snapshot is gone, the
                // member joins again and starts from new rows.
                guard let shown = member.shown, shown.precedes(history.present), !member.from.isCursor else {
                    failMembers([member])
                    continue
                }
                sink.deliverRecovery(member.id, [.changesLost], whenTaken: {})
                member.beginAfterLoss(at: FeedCursor(epoch: history.epoch, at: shown), telling: history.present)
            case .refused(let refusal, _) where member.question.rows != nil:
                sink.deliverRecovery(member.id, [.began(.refused(refusal))], whenTaken: {})
                readRows(member.question.rows, for: member, catalog)
                continue
            case .refused(let refusal, let rest):
                sink.deliverRecovery(member.id, [.began(.refused(refusal))], whenTaken: {})
                guard let rest, !member.from.isCursor else {
                    finishMember(member, at: present)
                    continue
                }
                member.beginAfterLoss(at: rest, telling: history.present)
            }
            if history.distance(from: member.from) ?? 0 > rows {
                far.append(member)
            } else {
                near.append(member)
            }
        }
    }

    private func readRows(_ rows: FirstRows?, for member: RecoveryMember, _ catalog: Catalog) {
        guard let wanted = subscriptions.registry.definition(of: member.question.group) else {
            return failMembers([member])
        }
        beginMember(member, with: rows, of: wanted, catalog)
    }

    /// The members that a slice can serve now, with their ends. No filter is waited for: changes that wait for one come
    /// live.
    func takeNear() -> [RecoveryMember] {
        let ready = near.filter { !$0.isGone && !$0.isBehind }.prefix(Self.crowd)
        let chosen = Set(ready.map(\.key))
        near.removeAll { $0.isGone || chosen.contains($0.key) }
        let first = undecided.changes.first(for: Set(ready.map(\.question.group)))
        return ready.filter { member in
            let item = first[member.question.group]
            member.end = item?.before
            guard item != nil else { return true }
            if let end = member.end, member.start?.precedes(end) == true { return true }
            ahead.append(member)
            return false
        }
    }

    /// Changes that waited for filters were delivered, or will be at once.
    func filtersAreDecided() {
        near += ahead.filter { !$0.isGone }
        ahead = []
    }

    /// The rows that can concern the members; nil if all rows must be examined.
    func prefilter(for served: [RecoveryMember]) -> RowPrefilter? {
        registry.prefilter(of: served.lazy.map(\.key), mostTexts: Self.mostTexts)
    }

    /// The members lacked too much for one slice. Those that lack most go to a scan, so that a slice is smaller for the
    /// others.
    func handleOverflow(_ served: [RecoveryMember]) {
        for member in served {
            member.overflows += 1
            member.end = nil
        }
        let sorted = served.filter { !$0.isGone }.sorted { ($0.start?.seen.xmax ?? 0) < ($1.start?.seen.xmax ?? 0) }
        let middle = sorted.isEmpty ? nil : sorted[(sorted.count - 1) / 2].start?.seen
        // Members at the same position stay together.
        let older = sorted.prefix { ($0.start?.seen.xmax ?? 0) <= (middle?.xmax ?? 0) }
        far += older
        near += sorted.dropFirst(older.count)
    }

    /// Takes the members that wait for a scan and lack at most this many transactions.
    func takeFar(within distance: UInt64, of present: Snapshot) -> [RecoveryMember] {
        let chosen = far.filter { member in
            guard !member.isGone, !member.isBehind, let start = member.start else { return false }
            return present.xmax &- start.seen.xmax <= distance
        }
        let keys = Set(chosen.map(\.key))
        far.removeAll { $0.isGone || keys.contains($0.key) }
        return chosen
    }

    var hasFar: Bool { far.contains { !$0.isGone && !$0.isBehind } }
    var hasNear: Bool { near.contains { !$0.isGone && !$0.isBehind } }

    /// A scan sent the members everything that `upper` sees.
    func scanFinished(_ served: [RecoveryMember], upTo upper: Snapshot) {
        for member in served where !member.isGone {
            if let start = member.start { member.moveTo(FeedCursor(epoch: start.epoch, at: upper)) }
            near.append(member)
        }
    }

    /// Returns members to the queue for another scan, for when their sockets have caught up.
    func putBack(_ left: [RecoveryMember]) { far += left.filter { !$0.isGone } }

    /// Fails the members that lack changes which may be gone and have not been told; they are told when they join again.
    func changesAreGone(upTo pruned: Snapshot, for concerned: [RecoveryMember]? = nil) {
        failMembers((concerned ?? Array(members.values)).filter { $0.mayMiss(pruned) })
    }

    /// Ends recoveries that cannot be served.
    func failMembers(_ failed: [RecoveryMember], _ end: RecoveryStep = .unavailable) {
        for member in failed where !member.isGone {
            sink.deliverRecovery(member.id, [end], whenTaken: {})
            removeMember(member.key)
        }
    }

    /// The members have everything that the present sees, and later changes come live. If the changes due to come live for
    /// a member were decided and delivered during the read, the member continues from there.
    func finishMembers(_ served: [RecoveryMember], at present: FeedCursor) {
        let first = undecided.changes.first(for: Set(served.lazy.filter { $0.end != nil }.map(\.question.group)))
        for member in served {
            guard let end = member.end, first[member.question.group]?.before != end else {
                finishMember(member, at: member.end ?? present)
                continue
            }
            member.moveTo(end)
            member.end = nil
            near.append(member)
        }
    }

    private func finishMember(_ member: RecoveryMember, at present: FeedCursor) {
        guard !member.isGone else { return }
        sink.deliverRecovery(member.id, [.caughtUp(cursor: present.text)], whenTaken: {})
        removeMember(member.key)
    }

    /// Sends members the rows that they lack, in the order of ids, and after them, once per call, the message that
    /// unrecorded changes are missing. An application reloads its data on this message, and an older version that arrived
    /// later would stay.
    ///
    /// - Throws: `PostgresError` if policies cannot be evaluated.
    func sendRows(_ rows: ArraySlice<RecoveredRow>, to served: [ChangeGroupID: RecoveryMember], of upper: Snapshot)
        throws
    {
        let losses = self.findLosses(among: rows, for: served)
        try tellOfChanges(rows, to: served, of: upper, before: losses)
        for key in losses.keys {
            guard let member = served[key], !member.isGone else { continue }
            sink.deliverRecovery(member.id, [.changesLost], whenTaken: {})
        }
    }

    /// - Parameter losses: the members that are told of losses after these changes, with the id of the first loss: later
    ///   changes carry a cursor before it, so that a client that breaks off before the message gets it when it comes back.
    private func tellOfChanges(
        _ rows: ArraySlice<RecoveredRow>, to served: [ChangeGroupID: RecoveryMember], of upper: Snapshot,
        before losses: [ChangeGroupID: Int64]
    ) throws {
        let shown = rows.filter { $0.change != nil }
        guard !shown.isEmpty, !registry.isEmpty, let catalog = registry.catalog else { return }
        let audience = RecoveryAudience(
            lacks: { key, place in served[key]?.lacksRow(shown[place]) ?? false },
            cursor: { key, place in
                let id = shown[place].id
                let known = losses[key].map { min(id, $0 - 1) } ?? id
                return served[key]?.cursor(at: known, of: upper) ?? ""
            })
        var batch = DeliveryBatch(
            shown.compactMap { $0.change.map { .change($0) } }, catalog: catalog, for: .recovering(audience))
        var unbound: Set<ChangeGroupID> = []
        for end in try batch.match(in: &registry, asking: { try subscriptions.answers(to: $0) }) {
            guard let definition = registry.definition(end.definition) else { continue }
            unbound.formUnion(definition.groups.keys)
            subscriptions.endFilter(end.binding, of: definition.key, because: end.reason)
        }
        try pipeline.judgeBatch(&batch, for: registry)
        // Complaints about policies reach affected live subscribers now, and the others once they are live.
        for (loop, complaints) in pipeline.complaints(in: subscriptions.registry).enumerated()
        where !complaints.isEmpty {
            sink.deliverEvents(complaints, to: loop, whenTaken: {})
        }
        let loops = pipeline.events(of: &batch, for: registry)
        // It is unknown what these members missed: they join again, and are then told what is wrong with their filter.
        failMembers(unbound.compactMap { members[$0] })
        failMembers(batch.failed.compactMap { members[$0] }, .undecided)
        var batches: [ChangeGroupID: [ChangeDelivery]] = [:]
        for case .change(let delivery) in loops.joined() where members[delivery.group] != nil {
            batches[delivery.group, default: []].append(delivery)
        }
        for (key, batch) in batches {
            guard let member = served[key] else { continue }
            let group = member.question.group
            member.underway += 1
            let id = member.id
            sink.deliverRecovery(id, [.changes(batch.map { $0.meant(for: group) })]) { [weak self, inbox] in
                inbox.postWork { [weak self] _ in self?.batchTaken(id) }
            }
        }
    }

    /// The members that lack unrecorded changes, with the id of the first row that stands for one.
    private func findLosses(
        among rows: ArraySlice<RecoveredRow>, for served: [ChangeGroupID: RecoveryMember]
    ) -> [ChangeGroupID: Int64] {
        var losses: [ChangeGroupID: Int64] = [:]
        var audiences: [UInt32: [RecoveryMember]] = [:]
        for row in rows {
            guard let oid = row.lossOf, let table = registry.catalog?.table(oid) else { continue }
            let audience = audiences[oid] ?? registry.groups(hearing: table).compactMap { served[$0] }
            audiences[oid] = audience.filter { member in
                guard member.lacksRow(row) else { return true }
                if losses[member.key] == nil { losses[member.key] = row.id }
                return false
            }
        }
        return losses
    }
}

extension ChangeDelivery {
    /// The same delivery for a single member of a group.
    fileprivate func meant(for group: ChangeGroupID) -> ChangeDelivery {
        ChangeDelivery(
            group: group, operation: operation, ids: ids, data: data, recipients: recipients, cursor: cursor,
            message: message, receipt: receipt)
    }
}
