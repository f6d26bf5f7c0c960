import Hub
import Matching

/// Receives the changes of a `DecisionQueue`.
protocol DecisionDelivery: AnyObject {
    /// Delivers the first waiting changes.
    ///
    /// - Throws: `PostgresError` if policies cannot be evaluated; the same call is then repeated.
    func deliverDecided(_ items: [UndecidedChanges.Item], _ answers: ConditionEvaluator.Answers) throws

    /// Everything up to this mark has been delivered.
    func markCovered(_ mark: Int)

    /// Ends filters so that no more than `most` of the counted questions are left.
    ///
    /// - Returns: the definitions that lost filters; nil if none did.
    func endExcess(of tally: UndecidedCount, over most: Int) -> Set<Int>?
}

/// Has Postgres decide the filters that changes wait for, and delivers the changes in their order; all other changes pass
/// meanwhile. One question is asked at a time, for the first waiting changes.
///
/// Confined to the feed's thread.
final class DecisionQueue {
    private(set) var changes = UndecidedChanges()
    /// The changes being decided, and the question under way.
    private var beingDecided: [UndecidedChanges.Item] = []
    private var job: ConditionDecider.Job?
    private let decider: ConditionDecider
    private unowned let delivery: any DecisionDelivery
    private let publish: (Int) -> Void
    private let whenDecided: @Sendable () -> Void
    /// Limit of the feed's wait for a decision.
    private static let limit = Duration.seconds(15)

    /// - Parameters:
    ///   - publish: receives the number of waiting changes.
    ///   - whenDecided: called on the decider's thread; it has `takeDecisions` called on the feed's.
    init(
        decider: ConditionDecider, delivery: any DecisionDelivery, publish: @escaping (Int) -> Void,
        whenDecided: @escaping @Sendable () -> Void
    ) {
        self.decider = decider
        self.delivery = delivery
        self.publish = publish
        self.whenDecided = whenDecided
    }

    /// Adds changes that wait.
    func addItems(_ items: [UndecidedChanges.Item]) {
        changes.addItems(items)
        askNext()
    }

    /// Holds a mark that covers everything waiting here.
    func holdMark(_ mark: Int) { changes.holdMark(mark) }

    private func askNext() {
        publish(changes.count)
        guard job == nil, !changes.isEmpty else { return }
        let isOverdue = changes.isOverdue(at: .now)
        beingDecided = changes.takeNext(at: .now)
        let items = beingDecided
        job = decider.startJob(
            of: items.count, { items.flatMap(\.matches.conditions) }, isOverdue: isOverdue, whenDone: whenDecided)
    }

    /// Delivers the changes that have been decided, if any.
    ///
    /// - Throws: the same errors as the delivery.
    func takeDecisions() throws {
        guard let answers = job?.result else { return }
        try delivery.deliverDecided(beingDecided, answers)
        let mark = changes.finishTaken()
        job = nil
        beingDecided = []
        askNext()
        if let mark { delivery.markCovered(mark) }
    }

    /// Waits until the changes being decided are delivered.
    ///
    /// - Throws: `PostgresError` if Postgres does not decide them, or policies cannot be evaluated.
    private func waitForDecisions() throws {
        askNext()
        try job?.wait(for: Self.limit)
        try takeDecisions()
    }

    /// Makes room for more waiting changes. The whole feed waits for that, but not for filters that are more than Postgres
    /// can decide: of these the most numerous end, until the first changes wait for none any more.
    ///
    /// - Throws: the same errors as `waitForDecisions`.
    func makeRoom() throws {
        while changes.isFull {
            let patience = changes.patience(at: .now)
            guard patience <= .zero else {
                askNext()
                if job?.isDone(within: patience) == true { try takeDecisions() }
                continue
            }
            guard let ended = delivery.endExcess(of: changes.tally, over: changes.mostLeft) else {
                try waitForDecisions()
                continue
            }
            job?.abandonJob()
            job = nil
            beingDecided = []
            changes.give(up: ended)
            try deliverCertain()
        }
    }

    /// Delivers the first changes that no longer wait for a decision.
    private func deliverCertain() throws {
        let items = changes.takeCertain()
        do {
            try delivery.deliverDecided(items, ConditionEvaluator.Answers(met: []))
        } catch {
            changes.returnTaken()
            throw error
        }
        if let mark = changes.finishTaken() { delivery.markCovered(mark) }
    }
}
