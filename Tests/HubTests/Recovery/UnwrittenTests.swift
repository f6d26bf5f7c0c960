import Hub
import Synchronization
import Testing
import Wire

/// Joins whose session cannot be written down, and when the list of who was served counts.
@Suite struct UnwrittenTests {
    /// A registry whose list nobody writes, and how often its claim was to be withdrawn.
    private final class UnwrittenList: Sendable {
        let registry = SessionRegistry.ofTheFirst
        private let asked = Mutex(0)
        var withdrawals: Int { asked.withLock { $0 } }

        init() { registry.startRecording(whenAwaited: {}) { [unowned self] in asked.withLock { $0 += 1 } } }
    }

    private func join(_ stage: Stage, _ slot: Slot, subject: String = "ann") throws -> [String] {
        stage.connect(slot, subject: subject)
        let lines = try stage.join("realtime:a", slot, RecoveryTests.config)
        guard let group = stage.subscribed.first else { return lines }
        return try lines + stage.watch { $0.changeSubscription(group, is: .live) }
    }

    private func isAnswered(_ lines: [String]) -> Bool { lines.contains { $0.contains("phx_reply") } }
    private func isRefused(_ lines: [String]) -> Bool { lines.contains { $0.contains("UnableToConnectToProject") } }

    private func write(_ registry: SessionRegistry) {
        let changed = registry.takeChanged(upTo: 10)
        registry.isWritten(changed, successfully: true)
    }

    /// A killed hub's list was believed, and who had been answered without being on it lost what came then.
    @Test func theListDoesNotCountBeforeSomebodyWhoIsNotOnItIsAnswered() throws {
        let list = UnwrittenList()
        let stage = Stage(sessions: list.registry)
        #expect(try !isAnswered(join(stage, 1)))
        #expect(try !isAnswered(stage.tick(after: 1900)))
        #expect(list.withdrawals == 0)
        #expect(try !isAnswered(stage.tick(after: 200)))
        try stage.tick(after: 50)
        #expect(list.withdrawals == 1, "once while it is under way")
        list.registry.withdrawalEnded(successfully: true)
        let lines = try stage.tick(after: 50)
        #expect(isAnswered(lines) && !isRefused(lines))
        #expect(!list.registry.isComplete(at: stage.now))
        // The next one has nothing to wait for but the writer.
        #expect(try !isAnswered(join(stage, 2, subject: "bob")))
        #expect(try isAnswered(stage.tick(after: 2100)))
        #expect(list.withdrawals == 1)
        write(list.registry)
        #expect(list.registry.isComplete(at: stage.now))
    }

    @Test func whoCanBeWrittenDownNowhereIsRefused() throws {
        let list = UnwrittenList()
        let stage = Stage(sessions: list.registry)
        _ = try join(stage, 1)
        try stage.tick(after: 2100)
        list.registry.withdrawalEnded(successfully: false)
        try stage.tick(after: 50)
        #expect(list.withdrawals == 2, "it is tried again")
        #expect(try !isRefused(stage.tick(after: 3700)))
        #expect(try isRefused(stage.tick(after: 200)))
        #expect(stage.hub.groupCount == 0)
    }

    /// The two are written on two connections, and a claim may be made while a withdrawal is under way.
    @Test func aClaimIsNotMadeByWhatWasKnownBeforeAWithdrawal() throws {
        let list = UnwrittenList()
        let (registry, stage) = (list.registry, Stage(sessions: list.registry))
        _ = try join(stage, 1)
        try stage.tick(after: 2100)
        let before = registry.withdrawals
        write(registry)
        #expect(!registry.beginsClaim(at: stage.now, after: before), "the turn may be the old one or the new one")
        registry.withdrawalEnded(successfully: true)
        #expect(!registry.beginsClaim(at: stage.now, after: before), "the turn may be the old one")
        #expect(registry.beginsClaim(at: stage.now, after: registry.withdrawals))
        #expect(try isAnswered(stage.tick(after: 50)))
        // From here on it may count again.
        _ = try join(stage, 2, subject: "bob")
        #expect(!registry.beginsClaim(at: stage.now, after: before))
        #expect(try !isAnswered(stage.tick(after: 2100)))
        #expect(list.withdrawals == 2)
    }

    /// A statement whose outcome nobody knows may have taken somebody off the list.
    @Test func whoMayHaveBeenTakenOffTheListIsNotOnIt() throws {
        let list = UnwrittenList()
        let (registry, stage) = (list.registry, Stage(sessions: list.registry))
        _ = try join(stage, 1)
        write(registry)
        #expect(try isAnswered(stage.tick(after: 50)))
        _ = try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 1)
        let gone = registry.takeChanged(upTo: 10)
        #expect(gone.map(\.count) == [0])
        registry.isWritten(gone, successfully: false)
        #expect(try !isAnswered(join(stage, 2)))
        write(registry)
        #expect(try isAnswered(stage.tick(after: 50)))
    }

    /// To the next process it is somebody else.
    @Test func aTokenOfAnotherRoleIsWrittenDownFirst() throws {
        let list = UnwrittenList()
        let (registry, stage) = (list.registry, Stage(sessions: list.registry))
        _ = try join(stage, 1)
        write(registry)
        #expect(try isAnswered(stage.tick(after: 50)))
        try stage.say(#"["1","5","realtime:a","access_token",{"access_token":"good authenticated 8000"}]"#, from: 1)
        let group = try #require(stage.subscribed.first)
        #expect(try stage.watch { $0.changeSubscription(group, is: .live) } == [])
        #expect(try stage.tick(after: 100).isEmpty)
        write(registry)
        let lines = try stage.tick(after: 50)
        #expect(lines.count == 1 && lines[0].hasPrefix("recover 0.\(group.serial) mark(0)"), "\(lines)")
        #expect(try stage.catchUp().contains { $0.contains("Subscribed to PostgreSQL") })
    }

    @Test func orItsChannelEnds() throws {
        let list = UnwrittenList()
        let (registry, stage) = (list.registry, Stage(sessions: list.registry))
        _ = try join(stage, 1)
        write(registry)
        try stage.tick(after: 50)
        try stage.say(#"["1","5","realtime:a","access_token",{"access_token":"good authenticated 8000"}]"#, from: 1)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        let lines = try stage.tick(after: 6100)
        #expect(lines.contains { $0.contains("phx_error") } && isRefused(lines))
        #expect(list.withdrawals == 1)
    }
}
