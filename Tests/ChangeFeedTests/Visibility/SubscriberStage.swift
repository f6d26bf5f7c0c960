import ChangeFeed
import Foundation
import Hub
import Logging
import Matching
import Synchronization
import Testing
import Wire

@testable import PostgresFixtures

/// A whole feed with its subscriptions, and in place of the loops a list of what they would be told.
final class SubscriberStage: ChangeSink {
    struct Seen: Sendable, Equatable {
        let group: ChangeGroupID
        /// Nil where it was for everybody in the group.
        let subjects: Set<String>?
        let operation: RowChange.Operation
        let data: String
        let cursor: String

        func isFor(_ subject: String) -> Bool { subjects?.contains(subject) ?? true }
    }

    struct Told: Sendable, Equatable {
        let subject: String
        let message: String
    }

    struct Loss: Sendable, Equatable {
        let group: ChangeGroupID
        let message: String
        /// How many changes the group had been sent.
        let behind: Int
    }

    /// A word on for whom a message waits, behind so many changes.
    struct WaitTold: Sendable {
        let change: Int64
        let waits: [MessageWait]
        let behind: Int
    }

    private struct Content {
        var seen: [Seen] = []
        var waits: [WaitTold] = []
        var broadcasts: [DatabaseBroadcast] = []
        var outcomes: [ChangeGroupID: [ChangeSubscriptionOutcome]] = [:]
        /// Complaints to single members.
        var told: [Told] = []
        /// What groups were told of changes that could not be recorded.
        var losses: [Loss] = []
        var isReady = false
        var serial = 0
        var recoveries: [RecoveryID: Recovered] = [:]
        var marks: [Int] = []
        /// How many changes had been seen when something began to wait, and when something was found to be gone.
        var withheldAt: [Int] = []
        var gapsAt: [Int] = []
        /// Batches of recoveries that are not taken, while `takesRecoveries` is false.
        var untaken: [@Sendable () -> Void] = []
        var takesRecoveries = true
    }

    /// What a member was told of what it had missed.
    struct Recovered: Sendable {
        var start: RecoveryStart?
        var changes: [Seen] = []
        /// How many changes it had been told, each time that it was told of some that could not be recorded.
        var lossesAt: [Int] = []
        var losses: Int { lossesAt.count }
        /// Where its changes come live, and how many had come to everybody by then.
        var seam: (cursor: String, seen: Int)?
        var isUnavailable = false
        /// A policy failed.
        var isUndecided = false
        /// Steps that broke the order.
        var faults = 0
        var isOver: Bool { seam != nil || isUnavailable || isUndecided }
    }

    private let content = Mutex(Content())
    private let subscriptions = Mutex<ChangeService?>(nil)
    let loopCount = 1

    /// Runs `body` with a feed on the database.
    static func with<Outcome>(
        _ database: Database, node: String = "test", recoveryWindow: Duration = .zero,
        rhythm: Doorbell.Rhythm = Doorbell.Rhythm(), filters: ConditionLimits = ConditionLimits(),
        observer: (any ChangeObserver)? = nil, logger: Logger = .silent,
        oldestMark: @escaping @Sendable () -> Int? = { nil }, pruneInterval: Duration = .seconds(60),
        _ body: (SubscriberStage) throws -> Outcome
    ) throws -> Outcome {
        let stage = SubscriberStage()
        var configuration = FeedConfiguration(conninfo: database.conninfo, node: node, rhythm: rhythm)
        configuration.firstRetry = .milliseconds(100)
        configuration.recoveryWindow = recoveryWindow
        configuration.filters = filters
        configuration.pruneInterval = pruneInterval
        let subscriptions = ChangeService(
            configuration: configuration, sink: stage, observer: observer, logger: logger, oldestMark: oldestMark
        ) { _ in }
        stage.subscriptions.withLock { $0 = subscriptions }
        subscriptions.start()
        defer {
            subscriptions.stop()
            // Each holds the other, and with it the sessions that policies are asked on.
            stage.subscriptions.withLock { $0 = nil }
        }
        try eventually("the feed is ready") { stage.content.withLock { $0.isReady } }
        return try body(stage)
    }

    // MARK: Subscribers

    static func claims(_ subject: String, role: String = "authenticated") -> Claims {
        Claims(
            role: Name(role), subject: Name(subject), expiresAt: .max,
            json: Array(#"{"sub":"\#(subject)","role":"\#(role)"}"#.utf8))
    }

    /// One group of a role, and who is in it.
    func join(
        _ bindings: String..., role: String = "authenticated", as subjects: String...
    ) throws -> ChangeGroupID {
        let parsed = try bindings.map { ChangeBinding(try JSON(parsing: Array($0.utf8))) }
        let id = ChangeGroupID(
            loop: 0,
            serial: content.withLock { content in
                content.serial += 1
                return content.serial
            })
        let source = try #require(subscriptions.withLock { $0 })
        source.subscribe(
            id, ChangeSubscription(role: Name(role), bindings: parsed, ids: ChangeBinding.ids(for: parsed)))
        for subject in subjects { source.admitClaims(Self.claims(subject, role: role), to: id) }
        try eventually("an answer to the subscription") { outcome(id) != nil }
        return id
    }

    /// The group's last member is gone.
    func leave(_ id: ChangeGroupID) throws { try #require(subscriptions.withLock { $0 }).unsubscribe(id) }

    func admit(_ subject: String, to id: ChangeGroupID) throws {
        try #require(subscriptions.withLock { $0 }).admitClaims(Self.claims(subject), to: id)
    }

    func withdraw(_ subject: String, from id: ChangeGroupID) throws {
        try #require(subscriptions.withLock { $0 }).withdrawClaims(Self.claims(subject), from: id)
    }

    func outcome(_ id: ChangeGroupID) -> ChangeSubscriptionOutcome? { outcomes(of: id).last }

    /// All that a group was told, in order.
    func outcomes(of id: ChangeGroupID) -> [ChangeSubscriptionOutcome] { content.withLock { $0.outcomes[id] ?? [] } }

    var told: [Told] { content.withLock { $0.told } }
    var losses: [Loss] { content.withLock { $0.losses } }

    /// The sentence that a subscription, or one of its bindings, failed with.
    func refusal(_ id: ChangeGroupID) -> String? {
        switch outcome(id) {
        case .failed(let sentence): sentence
        case .partly(let complaints): complaints.first(where: \.isError)?.message
        default: nil
        }
    }

    /// How many changes were delivered, to whomever.
    var count: Int { content.withLock { $0.seen.count } }

    /// Waits without sleeping, for measurements.
    func spin(until condition: (Int) -> Bool) {
        while !condition(count) { sched_yield() }
    }

    var seen: [Seen] { content.withLock { $0.seen } }
    var broadcasts: [DatabaseBroadcast] { content.withLock { $0.broadcasts } }

    /// The data of what one of the group's subjects was shown.
    func shown(_ subject: String, _ group: ChangeGroupID) -> [String] {
        seen.filter { $0.group == group && $0.isFor(subject) }.map(\.data)
    }

    /// Waits until everything that is committed by now was handed out: a row in a table that everybody may see is the
    /// last of it.
    func settle(_ database: Database) throws {
        let marker = UUID().uuidString
        try database.run("insert into marker values ('\(marker)')")
        try eventually("the marker") { seen.contains { $0.data.contains(marker) } }
        // What Postgres has to decide comes behind it.
        try eventually("all filters are decided", within: .seconds(60)) {
            undecided == 0
        }
    }

    // MARK: In place of the loops

    func deliverEvents(_ events: [FeedEvent], to loop: Int, whenTaken: @escaping @Sendable () -> Void) {
        content.withLock { content in
            for event in events {
                switch event {
                case .change(let change): content.seen.append(Self.seen(change))
                case .broadcast(let message): content.broadcasts.append(message)
                case .boundary(let mark): content.marks.append(mark)
                case .reached: break
                case .withheld: content.withheldAt.append(content.seen.count)
                case .complaint(let complaint, _, let claims, _):
                    content.told.append(Told(subject: claims.subject?.text ?? "", message: complaint.message))
                case .loss(let message, let group):
                    let behind = content.seen.count { $0.group == group }
                    content.losses.append(Loss(group: group, message: message, behind: behind))
                case .gap: content.gapsAt.append(content.seen.count)
                case .messageWaits(let change, let waits):
                    content.waits.append(WaitTold(change: change, waits: waits, behind: content.seen.count))
                case .broadcastGap, .receipts: break
                case .recovery: break
                }
            }
        }
        whenTaken()
    }

    private static func seen(_ change: ChangeDelivery) -> Seen {
        var subjects: Set<String>?
        if case .bearers(let claims) = change.recipients { subjects = Set(claims.compactMap(\.subject?.text)) }
        return Seen(
            group: change.group, subjects: subjects, operation: change.operation,
            data: String(decoding: change.data, as: UTF8.self), cursor: change.cursor)
    }

    func deliverRecovery(_ id: RecoveryID, _ steps: [RecoveryStep], whenTaken: @escaping @Sendable () -> Void) {
        let isTaken = content.withLock { content in
            for step in steps {
                let isFirst = content.recoveries[id]?.start == nil
                if content.recoveries[id]?.isOver == true { content.recoveries[id]?.faults += 1 }
                switch step {
                case .began(let start):
                    if !isFirst { content.recoveries[id]?.faults += 1 }
                    content.recoveries[id]?.start = start
                case .changes(let changes):
                    if isFirst { content.recoveries[id]?.faults += 1 }
                    content.recoveries[id]?.changes += changes.map(Self.seen)
                case .changesLost:
                    if isFirst { content.recoveries[id]?.faults += 1 }
                    let count = content.recoveries[id]?.changes.count ?? 0
                    content.recoveries[id]?.lossesAt.append(count)
                case .caughtUp(let cursor):
                    if isFirst { content.recoveries[id]?.faults += 1 }
                    content.recoveries[id]?.seam = (cursor, content.seen.count)
                case .passedBy: content.recoveries[id]?.faults += 1  // is for loops to say
                case .rowsBegin, .rowsEnd: content.recoveries[id]?.faults += 1  // nobody here asks for rows
                case .unavailable: content.recoveries[id]?.isUnavailable = true
                case .undecided: content.recoveries[id]?.isUndecided = true
                }
            }
            if !content.takesRecoveries { content.untaken.append(whenTaken) }
            return content.takesRecoveries
        }
        if isTaken { whenTaken() }
    }

    func withdrawSessionList(whenDone: @escaping @Sendable (Bool) -> Void) {
        guard let subscriptions = subscriptions.withLock({ $0 }) else { return whenDone(false) }
        subscriptions.withdrawSessionList(whenDone: whenDone)
    }

    // MARK: Recoveries

    /// Asks what a member of a group missed.
    func recover(_ group: ChangeGroupID, as subject: String, from point: RecoveryPoint) throws -> RecoveryID {
        let id = nextRecovery()
        recover(id, RecoveryQuestion(group: group, claims: Self.claims(subject), from: point))
        return id
    }

    /// For questions that are asked later, and from any thread.
    func nextRecovery() -> RecoveryID {
        content.withLock { content in
            content.serial += 1
            let id = RecoveryID(loop: 0, serial: content.serial)
            content.recoveries[id] = Recovered()
            return id
        }
    }

    func recover(_ id: RecoveryID, _ question: RecoveryQuestion) {
        subscriptions.withLock { $0 }?.startRecovery(id, question)
    }

    func abandon(_ id: RecoveryID) throws { try #require(subscriptions.withLock { $0 }).abandonRecovery(id) }

    func recovered(_ id: RecoveryID) -> Recovered { content.withLock { $0.recoveries[id] } ?? Recovered() }

    var unfinished: Int { content.withLock { $0.recoveries.values.filter { !$0.isOver }.count } }

    /// Asks and waits for the end of it.
    func recovery(
        of group: ChangeGroupID, as subject: String = "ann", from point: RecoveryPoint
    ) throws -> Recovered {
        let id = try recover(group, as: subject, from: point)
        try eventually("the recovery is over") { recovered(id).isOver }
        return recovered(id)
    }

    /// What a member has seen in all since it asked, before the seam and behind it.
    func stream(_ id: RecoveryID, in group: ChangeGroupID, as subject: String = "ann") -> [Seen] {
        let (recovered, seen) = content.withLock { ($0.recoveries[id] ?? Recovered(), $0.seen) }
        guard let seam = recovered.seam else { return recovered.changes }
        return recovered.changes + seen[seam.seen...].filter { $0.group == group && $0.isFor(subject) }
    }

    var isReady: Bool { content.withLock { $0.isReady } }

    var marks: [Int] { content.withLock { $0.marks } }
    var waits: [WaitTold] { content.withLock { $0.waits } }
    var withheldAt: [Int] { content.withLock { $0.withheldAt } }
    var gapsAt: [Int] { content.withLock { $0.gapsAt } }

    /// Whether the loop takes what recoveries bring; what it did not take it takes when it does again.
    var takesRecoveries: Bool {
        get { content.withLock { $0.takesRecoveries } }
        set {
            let untaken = content.withLock { content in
                content.takesRecoveries = newValue
                defer { if newValue { content.untaken = [] } }
                return newValue ? content.untaken : []
            }
            for whenTaken in untaken { whenTaken() }
        }
    }

    var statistics: FeedStatistics { subscriptions.withLock { $0?.statistics } ?? FeedStatistics() }

    /// Changes that wait until filters are decided.
    var undecided: Int { subscriptions.withLock { $0?.undecidedChanges } ?? 0 }

    var filterEnds: [FilterEnd: Int] { subscriptions.withLock { $0?.filterEnds } ?? [:] }

    func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome) {
        content.withLock { $0.outcomes[id, default: []].append(outcome) }
    }

    func feedChanged(isReady: Bool) {
        content.withLock { $0.isReady = isReady }
    }
}

extension Database {
    /// A chat: users see the messages of the conversations they are in. `marker` is for everybody.
    func chat() throws -> Database {
        try run(
            """
            do $$ begin
                if to_regrole('authenticated') is null then create role authenticated; end if;
                if to_regrole('anon') is null then create role anon; end if;
            exception when duplicate_object then null;
            end $$;
            """)
        return try prepared(
            """
            create table participants (conversation int, member text, primary key (conversation, member));
            create table messages (
                id int primary key, conversation int, body text, hidden boolean default false, secret text
            );
            create table marker (text text);
            alter table participants enable row level security;
            alter table messages enable row level security;
            create function me() returns text language sql stable as
                $$ select nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub' $$;
            create policy own on participants for select to authenticated using (member = me());
            create policy of_mine on messages for select to authenticated using (exists (
                select from participants p where p.conversation = messages.conversation and p.member = me()));
            grant select on participants, messages, marker to authenticated;
            insert into participants values (1, 'ann'), (1, 'bob'), (2, 'ann');
            """, watching: "messages", "marker")
    }
}
