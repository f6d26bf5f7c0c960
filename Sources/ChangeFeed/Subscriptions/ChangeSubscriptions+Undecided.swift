package import Hub
import Postgres

/// Changes for filters that only Postgres can decide: all others go on meanwhile.
extension ChangeSubscriptions {
    /// How long the feed waits for a decision where it has to.
    private static let decisionLimit = Duration.seconds(15)

    func decideLater(_ items: [UndecidedChanges.Item]) {
        undecided.add(items)
        askForDecisions()
    }

    private func askForDecisions() {
        let count = undecided.count
        undecidedCount.withLock { $0 = count }
        guard job == nil, !undecided.isEmpty else { return }
        let isOverdue = undecided.isOverdue(at: .now)
        beingDecided = undecided.takeNext(at: .now)
        job = decider.decide(beingDecided, isOverdue: isOverdue) { [self] in
            feed.withLock { $0 }?.perform { [self] _ in
                do {
                    try takeDecisions()
                } catch {
                    // The end of the next poll tries again.
                    logger.debug("What filters match cannot be judged now: \(error)")
                }
            }
        }
    }

    /// Delivers what was decided.
    ///
    /// - Throws: `PostgresError` where policies cannot be asked; the same is tried again.
    func takeDecisions() throws {
        guard let answers = job?.result else { return }
        let mark = try deliver(beingDecided, answers)
        job = nil
        beingDecided = []
        askForDecisions()
        if let mark { tell(ofMark: mark) }
    }

    /// Delivers the first of what waits.
    ///
    /// - Returns: the newest mark that covers no more than was delivered.
    private func deliver(_ items: [UndecidedChanges.Item], _ answers: ConditionEvaluator.Answers) throws -> Int? {
        guard let catalog = registry.catalog else { throw PostgresError(.connection, "The catalog is not known yet.") }
        var round = DeliveryBatch(items, met: answers.met, catalog: catalog)
        try round.judge(for: registry, by: &visibility)
        let decided = visibility.statistics
        decisions.withLock { $0 = decided }
        tellOfEnds(items, answers)
        var loops = round.events(for: registry, loops: sink.loopCount, encodingWith: &encoder, beside: &postponed)
        announceWaiting(beside: round, to: &loops)
        for (place, members) in round.postponed.sorted(by: { $0.key < $1.key }) {
            postponed.add(items[place].change, cursor: items[place].cursor, for: members, at: .now)
        }
        let mark = undecided.settle()
        send(loops)
        return mark
    }

    /// Tells loops that changes wait here which came before those that they are sent now.
    func announceWaiting(beside round: borrowing DeliveryBatch, to loops: inout [[FeedEvent]]) {
        // To all of them: on any of them may join who gets its changes on another.
        let isFirst = !round.postponed.isEmpty && postponed.isEmpty
        for loop in loops.indices where isFirst || !undecided.isEmpty && !loops[loop].isEmpty {
            loops[loop].insert(.withheld, at: 0)
        }
    }

    /// Tells those of whose filters the database did not decide one.
    private func tellOfEnds(_ items: [UndecidedChanges.Item], _ answers: ConditionEvaluator.Answers) {
        guard !answers.givenUp.isEmpty else { return }
        var ended: Set<DeliveryBatch.GivenUp> = []
        for (place, undecided) in items.flatMap(\.matches.undecided).enumerated() {
            guard let reason = answers.givenUp[place] else { continue }
            ended.insert(.init(definition: undecided.group, binding: undecided.id, reason: reason))
        }
        for end in ended {
            guard let definition = registry.definition(end.definition) else { continue }
            tell(registry.end(end.binding, of: definition.key, because: end.reason))
        }
    }

    /// Sees to it that more may wait. Everybody waits for that, but not for filters that are more than Postgres can decide: of
    /// these end the most numerous, until what comes first waits for none any more.
    ///
    /// - Throws: as `waitForDecisions` does.
    func makeRoom() throws {
        while undecided.isFull {
            let patience = undecided.patience(at: .now)
            guard patience <= .zero else {
                askForDecisions()
                if job?.isDone(within: patience) == true { try takeDecisions() }
                continue
            }
            guard let ended = registry.endExcess(of: undecided.tally, over: undecided.mostLeft) else {
                try waitForDecisions()
                continue
            }
            job?.abandon()
            job = nil
            beingDecided = []
            undecided.give(up: ended)
            tellOfEndings()
            try deliverCertain()
        }
    }

    /// Delivers what comes first and waits for no decision any more.
    private func deliverCertain() throws {
        let items = undecided.takeCertain()
        do {
            let mark = try deliver(items, ConditionEvaluator.Answers(met: []))
            if let mark { tell(ofMark: mark) }
        } catch {
            undecided.takeBack()
            throw error
        }
    }

    /// Tells those whose filters ended because they were too many.
    func tellOfEndings() {
        for ending in registry.takeEndings() {
            budget.count(.tooMany, ending.bindings)
            logger.warning(
                """
                \(ending.bindings) filters of a channel are not served any more: Postgres would have to decide more of them \
                than it may (limits.undecided_filters) or can, and no channel has more.
                """)
            tell(ending.groups.map { ($0, ending.outcome) })
        }
    }

    /// Waits until what is being decided is delivered.
    ///
    /// - Throws: `PostgresError` where Postgres does not decide it, or policies cannot be asked.
    func waitForDecisions() throws {
        askForDecisions()
        try job?.wait(for: Self.decisionLimit)
        try takeDecisions()
    }

    package func settle(_ groups: [ChangeGroupID]) throws {
        while undecided.concerns(groups) { try waitForDecisions() }
    }
}
