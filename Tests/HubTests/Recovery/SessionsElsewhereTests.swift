import Hub
import Synchronization
import Testing
import Wire

/// Clients that may come from another hub: what that hub is asked, and what it says of its own.
@Suite struct SessionsElsewhereTests {
    typealias Found = [RecoveryKey: [SessionRegistry.Elsewhere]]

    /// A registry whose list is written by hand, and the questions to other hubs that came of it.
    final class Written: Sendable {
        let registry = SessionRegistry.ofTheFirst
        private struct Question: Sendable {
            let found: Found
            let done: @Sendable (Found) -> Void
        }

        private let open = Mutex<[Question]>([])

        init(asks: Bool = true) {
            registry.startRecording(whenAwaited: {})
            let ask: SessionRegistry.AskElsewhere = { [unowned self] found, done in
                open.withLock { $0.append(Question(found: found, done: done)) }
            }
            registry.lookElsewhere(asking: asks ? ask : nil)
        }

        var questions: Int { open.withLock { $0.count } }

        /// The writer's turn; in the database stands that these hubs had somebody of each key.
        func write(_ others: [SessionRegistry.Elsewhere] = []) {
            let changed = registry.takeChanged(upTo: 10)
            let found = Dictionary(changed.map { ($0.key, others) }, uniquingKeysWith: { $1 })
            registry.isWritten(changed, successfully: true, elsewhere: others.isEmpty ? [:] : found)
        }

        func answer(_ change: (SessionRegistry.Elsewhere) -> SessionRegistry.Elsewhere?) {
            let waiting = open.withLock { open in
                defer { open = [] }
                return open
            }
            for question in waiting { question.done(question.found.mapValues { $0.compactMap(change) }) }
        }

        /// By what each key is asked about, of one question.
        func answer(byKey change: (RecoveryKey, SessionRegistry.Elsewhere) -> SessionRegistry.Elsewhere?) {
            guard let question = open.withLock({ $0.popLast() }) else { return }
            var found = question.found
            for (key, others) in found { found[key] = others.compactMap { change(key, $0) } }
            question.done(found)
        }
    }

    static let other = SessionRegistry.Elsewhere(node: "hub2", snapshot: "5:5:")

    func join(_ stage: Stage, _ slot: Slot, subject: String? = "ann", _ config: String = RecoveryTests.config)
        throws -> [String]
    {
        stage.connect(slot, subject: subject)
        let lines = try stage.join("realtime:a", slot, config)
        guard let group = stage.subscribed.first else { return lines }
        return try lines + stage.watch { $0.changeSubscription(group, is: .live) }
    }

    func isAnswered(_ lines: [String]) -> Bool { lines.contains { $0.contains("phx_reply") } }

    /// The point that the only recovery among these lines begins at.
    func point(_ lines: [String]) -> Substring? {
        lines.first { $0.hasPrefix("recover") }?.split(separator: " ", maxSplits: 2).last
    }

    @Test func aJoinWaitsForTheHubThatHadItsClient() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        #expect(try !isAnswered(join(stage, 1)))
        list.write([Self.other])
        #expect(list.questions == 1)
        #expect(try !isAnswered(stage.tick(after: 50)))
        list.answer { $0.withCursor("x.1") }
        #expect(try point(stage.tick(after: 50)) == #"peer(cursor: "x.1", otherwise: "5:5:")"#)
    }

    @Test func whoWasNotThereMissedNothing() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        list.write([Self.other])
        list.answer { _ in nil }
        let lines = try stage.tick(after: 50)
        #expect(isAnswered(lines) && point(lines) == nil)
    }

    @Test func whatStandsInTheDatabaseCountsWhereNobodyAnswers() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        list.write([Self.other])
        #expect(try !isAnswered(stage.tick(after: 900)))
        #expect(try point(stage.tick(after: 200)) == #"snapshot("5:5:")"#)
        list.answer { _ in nil }
        #expect(try stage.tick(after: 50).isEmpty, "too late")
        // And at once where hubs are not asked.
        let alone = Written(asks: false)
        let second = Stage(sessions: alone.registry)
        _ = try join(second, 1)
        alone.write([Self.other])
        #expect(try point(second.tick(after: 50)) == #"snapshot("5:5:")"#)
    }

    @Test func whoJoinsWhileAHubIsAskedIsAskedForAnew() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1, subject: nil)
        list.write([Self.other])
        #expect(try !isAnswered(join(stage, 2, subject: nil)))
        list.answer { _ in nil }
        #expect(try isAnswered(stage.tick(after: 50)), "the first")
        list.write([Self.other])
        #expect(list.questions == 1)
        list.answer { $0.withCursor("x.2") }
        #expect(try point(stage.tick(after: 50)) == #"peer(cursor: "x.2", otherwise: "5:5:")"#)
    }

    /// Where the list cannot be written, nobody knows which hub had the client.
    @Test func aJoinIsNotAnsweredBeforeItIsKnownWhoElseHadItsClient() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        try stage.tick(after: 2100)
        list.registry.withdrawalEnded(successfully: true)
        #expect(try !isAnswered(stage.tick(after: 100)))
        list.write()
        #expect(try isAnswered(stage.tick(after: 50)))
    }

    /// Between the look into the database and its answer somebody may come who was elsewhere until then.
    @Test func whoJoinsWhileItIsLookedForIsLookedForAnew() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1, subject: nil)
        let first = list.registry.takeChanged(upTo: 10)
        #expect(try !isAnswered(join(stage, 2, subject: nil)))
        list.registry.isWritten(first, successfully: true)
        let lines = try stage.tick(after: 50)
        #expect(lines.count { $0.contains("phx_reply") } == 1, "the first: \(lines)")
        list.write([Self.other])
        list.answer { $0.withCursor("x.2") }
        #expect(try point(stage.tick(after: 50)) == #"peer(cursor: "x.2", otherwise: "5:5:")"#)
    }

    // MARK: Whose session gave way on another hub

    @Test func whoseSessionGaveWayElsewhereIsFoundByItsUser() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        let changed = list.registry.takeChanged(upTo: 10)
        let user = try #require(changed.first?.sought.last)
        #expect(changed.map(\.sought) == [[changed[0].key, user]] && user != changed[0].key)
        list.registry.isWritten(changed, successfully: true, elsewhere: [user: [Self.other]])
        #expect(list.questions == 1)
        list.answer { $0.withCursor("x.7") }
        #expect(try point(stage.tick(after: 50)) == #"peer(cursor: "x.7", otherwise: "5:5:")"#)
        // It is looked for once.
        #expect(list.registry.takeChanged(upTo: 10).allSatisfy { $0.sought.isEmpty })
    }

    /// The database says a second later what gave way; the hub itself knows it.
    @Test func aHubThatHadTheClientIsAskedAboutItsUserToo() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        let key = try #require(list.registry.takeChanged(upTo: 10).first?.key)
        list.registry.nothingIsWritten()
        list.write([Self.other])
        list.answer(byKey: { asked, other in asked == key ? nil : other.withCursor("x.8") })
        #expect(try point(stage.tick(after: 50)) == #"peer(cursor: "x.8", otherwise: "5:5:")"#)
    }

    @Test func aHubThatKnowsNothingOfTheUserHoldsNobodyBack() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        let changed = list.registry.takeChanged(upTo: 10)
        let key = try #require(changed.first?.key)
        list.registry.isWritten(changed, successfully: true, elsewhere: [key: [Self.other]])
        list.answer(byKey: { asked, other in asked == key ? nil : other })
        let lines = try stage.tick(after: 50)
        #expect(isAnswered(lines) && point(lines) == nil)
    }

    // MARK: What a hub says of its own

    private func key(_ list: Written) throws -> RecoveryKey {
        try #require(list.registry.takeChanged(upTo: 1).first?.key)
    }

    /// A member of ann's that is live, and its key.
    func live(_ list: Written) throws -> (Stage, RecoveryKey) {
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        let changed = list.registry.takeChanged(upTo: 10)
        list.registry.isWritten(changed, successfully: true)
        let lines = try stage.tick(after: 50)
        #expect(isAnswered(lines))
        return (stage, try #require(changed.first?.key))
    }

    @Test func whoIsHereStandsWhereItHasProven() throws {
        let list = Written()
        let (stage, key) = try live(list)
        #expect(list.registry.whereabouts(of: [key], at: stage.now) == [.from(.mark(0))])
        _ = try stage.watch { $0.deliverEvent(.boundary(4)) }
        stage.hub.nothingUnacknowledged(of: 1)
        #expect(list.registry.whereabouts(of: [key], at: stage.now) == [.from(.mark(4))])
        try stage.disconnect(1)
        _ = try stage.watch { $0.deliverEvent(.boundary(9)) }
        #expect(list.registry.whereabouts(of: [key], at: stage.now) == [.from(.mark(4))])
        try stage.tick(after: 121_000)
        list.registry.removeExpired(at: stage.now)
        #expect(list.registry.whereabouts(of: [key], at: stage.now) == [.nobody])
    }

    @Test func whoSaidGoodByeDoesNotComeBack() throws {
        let list = Written()
        let (stage, key) = try live(list)
        try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 1)
        #expect(
            list.registry.whereabouts(of: [key, RecoveryKey(high: 1, low: 2)], at: stage.now) == [.nobody, .nobody])
    }

    @Test func itIsNotKnownOfWhoMayComeFromAThirdHub() throws {
        let list = Written()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        let key = try key(list)
        #expect(list.registry.whereabouts(of: [key], at: stage.now) == [.unknown])
    }

    @Test func whoWasServedByTheLastProcessStandsWhereThatWas() throws {
        let registry = SessionRegistry()
        let key = RecoveryKey(high: 1, low: 2)
        let now = Stage.start
        #expect(registry.whereabouts(of: [key], at: now) == [.from(.restart)], "nobody knows whom it served")
        registry.restoreSessions([SessionRegistry.Record(key: key, count: 1)])
        let other = RecoveryKey(high: 1, low: 3)
        #expect(registry.whereabouts(of: [key, other], at: now) == [.from(.restart), .nobody])
        let stage = Stage(sessions: registry)
        _ = try join(stage, 1)
        #expect(registry.whereabouts(of: [key, other], at: stage.now) == [.from(.restart), .nobody])
        try stage.tick(after: 121_000)
        registry.removeExpired(at: stage.now)
        #expect(registry.whereabouts(of: [key], at: stage.now) == [.nobody])
    }

    // MARK: Cursors that clients made up

    /// Without a user all look alike, so what one of them says must not count for the others.
    @Test func aCursorOfSomebodyElseStandsBesideWhatIsKnown() throws {
        let registry = SessionRegistry.ofTheFirst
        let stage = Stage(sessions: registry)
        _ = try join(stage, 1, subject: nil)
        try stage.catchUp()
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        stage.hub.nothingUnacknowledged(of: 1)
        let config = RecoveryTests.config.dropLast() + #","resume":{"cursor":"rubbish"}}"#
        _ = try join(stage, 2, subject: nil, String(config))
        try stage.disconnect(2)
        try stage.disconnect(1)
        let lines = try join(stage, 3, subject: nil)
        #expect(point(lines)?.hasPrefix("earliest([") == true)
        #expect(lines.joined().contains("mark(3)") && lines.joined().contains(#"cursor("rubbish")"#), "\(lines)")
    }
}
