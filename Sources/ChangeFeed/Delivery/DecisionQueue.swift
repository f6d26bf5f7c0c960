import Hub
import Matching

/// What a `DecisionQueue` hands changes to.
protocol DecisionDelivery: AnyObject {
    /// Delivers the first of what waits.
    ///
    /// - Throws: `PostgresError` where policies cannot be asked; the same is tried again.
    func deliver(_ items: [UndecidedChanges.Item], _ answers: ConditionEvaluator.Answers) throws

    /// All up to this mark is delivered.
    func covered(_ mark: Int)

    /// Ends filters so that no more than `most` questions of those that were counted are left, and tells whose they were.
    ///
    /// - Returns: the definitions some of whose filters ended; nil where none did.
    func endExcess(of tally: UndecidedCount, over most: Int) -> Set<Int>?
}

/// Has the filters that changes wait for decided by Postgres, and the changes delivered in their order; all others go on
/// meanwhile. At any time one question is asked, for the first that wait.
///
/// Confined to the feed's thread.
final class DecisionQueue {
    private(set) var changes = UndecidedChanges()
    /// What is being decided, and the question under way.
    private var beingDecided: [UndecidedChanges.Item] = []
    private var job: ConditionDecider.Job?
    private let decider: ConditionDecider
    private unowned let delivery: any DecisionDelivery
    private let publish: (Int) -> Void
    private let whenDecided: @Sendable () -> Void
    /// How long the feed waits for a decision where it has to.
    private static let limit = Duration.seconds(15)

    /// - Parameters:
    ///   - publish: is told how many changes wait.
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

    /// Changes wait from now on.
    func add(_ items: [UndecidedChanges.Item]) {
        changes.add(items)
        ask()
    }

    /// A mark covers all that waits here.
    func hold(_ mark: Int) { changes.hold(mark) }

    private func ask() {
        publish(changes.count)
        guard job == nil, !changes.isEmpty else { return }
        let isOverdue = changes.isOverdue(at: .now)
        beingDecided = changes.takeNext(at: .now)
        let items = beingDecided
        job = decider.decide(
            of: items.count, { items.flatMap(\.matches.conditions) }, isOverdue: isOverdue, whenDone: whenDecided)
    }

    /// Delivers what was decided, if anything was.
    ///
    /// - Throws: as `DecisionDelivery.deliver` does.
    func takeDecisions() throws {
        guard let answers = job?.result else { return }
        try delivery.deliver(beingDecided, answers)
        let mark = changes.settle()
        job = nil
        beingDecided = []
        ask()
        if let mark { delivery.covered(mark) }
    }

    /// Waits until what is being decided is delivered.
    ///
    /// - Throws: `PostgresError` where Postgres does not decide it, or policies cannot be asked.
    private func waitForDecisions() throws {
        ask()
        try job?.wait(for: Self.limit)
        try takeDecisions()
    }

    /// Sees to it that more may wait. Everybody waits for that, but not for filters that are more than Postgres can decide: of
    /// these end the most numerous, until what comes first waits for none any more.
    ///
    /// - Throws: as `waitForDecisions` does.
    func makeRoom() throws {
        while changes.isFull {
            let patience = changes.patience(at: .now)
            guard patience <= .zero else {
                ask()
                if job?.isDone(within: patience) == true { try takeDecisions() }
                continue
            }
            guard let ended = delivery.endExcess(of: changes.tally, over: changes.mostLeft) else {
                try waitForDecisions()
                continue
            }
            job?.abandon()
            job = nil
            beingDecided = []
            changes.give(up: ended)
            try deliverCertain()
        }
    }

    /// Delivers what comes first and waits for no decision any more.
    private func deliverCertain() throws {
        let items = changes.takeCertain()
        do {
            try delivery.deliver(items, ConditionEvaluator.Answers(met: []))
        } catch {
            changes.takeBack()
            throw error
        }
        if let mark = changes.settle() { delivery.covered(mark) }
    }
}
