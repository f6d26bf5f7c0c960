import Foundation
import StreamFiles
import Streams
import Synchronization
import Testing
import Wire

/// Ends that are committed with rows, each kind of stream and each kind of end with a statement of its own.
@Suite(.serialized) struct StreamCloseTests {
    private let committer = ScriptedCommitter()
    private static let ann = StreamBearer(role: "authenticated", claims: Array(#"{"sub":"ann"}"#.utf8))

    private func stage(
        _ rules: [CloseRule], _ adjust: (inout FileStreamService.Setup) -> Void = { _ in }
    ) throws -> ServiceStage {
        try ServiceStage {
            $0.committer = committer
            $0.closeRules = rules
            adjust(&$0)
        }
    }

    private func close(_ name: String, _ stage: ServiceStage) throws -> StreamAnswer {
        var append = StreamAppend(body: Array("!".utf8))
        append.closes = true
        append.bearer = Self.ann
        return try stage.ask(.append(append), name)
    }

    @Test func eachKindHasItsStatement() throws {
        let stage = try stage([
            CloseRule(pattern: "reply/*", statement: "reply"),
            CloseRule(pattern: "voice/*", statement: "voice", role: "writer"),
        ])
        for name in ["reply/1", "voice/1", "other/1"] {
            try stage.create(name, body: "x")
            guard case .appended = try close(name, stage) else {
                Issue.record("\(name) is not closed")
                continue
            }
        }
        #expect(committer.commits.map(\.rule.statement) == ["reply", "voice"])
        #expect(committer.commits.map(\.bearer.role) == ["authenticated", "writer"])
        #expect(committer.commits.allSatisfy { $0.content == Array("x!".utf8) && $0.status == .complete })
    }

    /// The statement of one kind fails, and the other's streams end as ever.
    @Test func aStatementThatFailsIsItsOwnKinds() throws {
        let stage = try stage([
            CloseRule(pattern: "reply/*", statement: "reply"), CloseRule(pattern: "voice/*", statement: "voice"),
        ])
        committer.respond { $0.rule.statement == "voice" ? .refused("no such cast") : .committed(row: nil) }
        try stage.create("reply/1")
        try stage.create("voice/1")
        #expect(try close("voice/1", stage).refusal == .closeFailed("voice/*: no such cast"))
        guard case .appended = try close("reply/1", stage) else {
            Issue.record("it is not closed")
            return
        }
        #expect(try stage.status("voice/1") == .open && stage.status("reply/1")?.ending?.reason == .complete)
        let voice = try #require(StreamName("voice/1"))
        let report: StreamReport? = try stage.wait { stage.service.inspectStream(voice, limit: 1, then: $0) }
        #expect(report?.trouble == "voice/*: no such cast")
    }

    @Test func aCancelIsCommittedAsWhoeverCancels() throws {
        let stage = try stage([CloseRule(pattern: "*", statement: "stopped", reasons: [.cancelled])])
        committer.respond { _ in .committed(row: Array(#"{"id":1}"#.utf8)) }
        try stage.create("a", body: "so far")
        guard case .done(let end?) = try stage.ask(.cancel(nil, by: Self.ann), "a") else {
            Issue.record("it is not cancelled")
            return
        }
        #expect(end.status.ending?.reason == .cancelled && end.end == 6)
        #expect(end.status.ending?.row == Array(#"{"id":1}"#.utf8))
        #expect(committer.commits.map(\.bearer) == [Self.ann])
        #expect(committer.commits.map(\.status) == [.cancelled] && committer.commits[0].content == Array("so far".utf8))
        // To cancel again is no second row.
        guard case .done = try stage.ask(.cancel(nil, by: Self.ann), "a") else {
            Issue.record("it is refused")
            return
        }
        #expect(committer.commits.count == 1)
        #expect(try stage.afterKill().status("a")?.ending?.row == Array(#"{"id":1}"#.utf8))
    }

    @Test func aCancelWhoseStatementFailsLeavesTheStreamOpen() throws {
        let stage = try stage([CloseRule(pattern: "*", statement: "stopped", reasons: [.cancelled])])
        committer.respond { _ in .refused("no such column") }
        try stage.create("a", body: "so far")
        #expect(try stage.ask(.cancel(nil, by: Self.ann), "a").refusal == .closeFailed("*: no such column"))
        try stage.append(", and more", to: "a")
        #expect(try stage.text("a") == "so far, and more" && stage.status("a") == .open)
        // An operator has no token.
        #expect(try stage.ask(.cancel(nil, by: nil), "a").refusal?.reason == .row)
    }

    @Test func anAbortIsCommittedAsTheEntrysRole() throws {
        let stage = try stage([
            CloseRule(pattern: "*", statement: "gone", reasons: [.aborted], role: "writer")
        ]) { $0.lease.abandonedAfter = 1 }
        committer.respond { _ in .committed(row: nil) }
        try stage.create("a", body: "so far")
        try eventually("the end") { try stage.status("a")?.ending?.reason == .aborted }
        #expect(committer.commits.map(\.bearer.role) == ["writer"] && committer.commits.map(\.status) == [.aborted])
        #expect(try stage.afterKill().status("a")?.ending?.reason == .aborted)
    }

    /// It is tried again, and a producer that comes back meanwhile goes on.
    @Test func anAbortWhoseStatementFailsIsTriedAgain() throws {
        let stage = try stage([
            CloseRule(pattern: "*", statement: "gone", reasons: [.aborted], role: "writer")
        ]) { $0.lease.abandonedAfter = 1 }
        committer.respond { _ in .refused("no such table") }
        try stage.create("a", body: "so far")
        try eventually("the first attempt") { committer.commits.count == 1 }
        guard case .appended = try stage.append("!", to: "a") else {
            Issue.record("it has ended")
            return
        }
        committer.respond { _ in .committed(row: nil) }
        try eventually("the end") { try stage.status("a")?.ending?.reason == .aborted }
        #expect(committer.commits.count >= 2 && committer.commits.last?.content == Array("so far!".utf8))
        #expect(try stage.statistics().unclosed == 0)
    }

    /// Whose statement always fails, or whose database stays away, is not kept for ever.
    @Test(arguments: [StreamCommitOutcome.refused("no such table"), .unknown])
    func whatCannotBeClosedEndsWithoutItsRow(_ outcome: StreamCommitOutcome) throws {
        let stage = try stage([CloseRule(pattern: "*", statement: "reply")]) { $0.limits.closedWithin = 1 }
        committer.respond { _ in outcome }
        committer.settle(as: outcome)
        try stage.create("a", body: "so far")
        #expect(try close("a", stage).refusal != nil)
        try eventually("the end") { try stage.status("a")?.ending?.reason == .aborted }
        #expect(try stage.text("a") == "so far" && stage.statistics().unclosed == 1)
        #expect(try stage.append("?", to: "a").refusal?.reason == .ended)
        #expect(try stage.afterKill().status("a")?.ending?.reason == .aborted)
    }

    @Test func closesThatFailDoNotFillTheDisk() throws {
        let stage = try stage([CloseRule(pattern: "*", statement: "reply")])
        committer.respond { _ in .refused("no such table") }
        try stage.create("a", "application/octet-stream", body: "so far")
        var append = StreamAppend(body: [UInt8](repeating: 1, count: 1_000_000))
        append.closes = true
        append.bearer = Self.ann
        for _ in 0..<40 { #expect(try stage.ask(.append(append), "a").refusal?.reason == .row) }
        let file = try #require(try stage.files.first)
        #expect(try Data(contentsOf: URL(fileURLWithPath: stage.directory + "/" + file)).count < 19_000_000)
        // No attempt has the number of another.
        #expect(Set(committer.commits.map(\.key)).count == 40)
        let next = try stage.afterKill()
        #expect(try next.text("a") == "so far" && next.status("a") == .open)
        committer.respond { _ in .committed(row: nil) }
        guard case .appended = try close("a", next) else {
            Issue.record("it is not closed")
            return
        }
        #expect(Set(committer.commits.map(\.key)).count == 41)
    }

    /// The hub is killed while an end waits for its row: what became of the attempt is asked before anything else is done.
    @Test(arguments: [StreamEnding.Reason.complete, .cancelled, .aborted], [true, false])
    func afterAKillRowAndEndAreBothThereOrNeither(_ reason: StreamEnding.Reason, _ isCommitted: Bool) throws {
        let rules = [
            CloseRule(pattern: "*", statement: "ends", reasons: [.complete, .cancelled, .aborted], role: "writer")
        ]
        let stage = try stage(rules) { $0.lease.abandonedAfter = reason == .aborted ? 1 : 0 }
        committer.respond { _ in nil }
        try stage.create("a", body: "so far")
        let name = try #require(StreamName("a"))
        switch reason {
        case .complete:
            var append = StreamAppend(body: Array("!".utf8))
            append.closes = true
            append.bearer = Self.ann
            stage.service.submitRequest(.append(append), on: name) { _ in }
        case .cancelled: stage.service.submitRequest(.cancel(nil, by: Self.ann), on: name) { _ in }
        case .aborted: break
        }
        try eventually("the attempt") { committer.commits.count == 1 }
        committer.settle(as: isCommitted ? .committed(row: nil) : .refused("interrupted"))
        let next = try stage.afterKill { $0.lease.abandonedAfter = 0 }
        committer.respond { _ in .committed(row: nil) }
        guard case .done(let after?) = try next.ask(.cancel(nil, by: nil), "a") else {
            // The attempt was given up, and this cancel is another.
            Issue.record("it is refused")
            return
        }
        #expect(after.status.ending?.reason == (isCommitted ? reason : .cancelled))
        #expect(try next.text("a") == (isCommitted && reason == .complete ? "so far!" : "so far"))
    }
}

/// Answers as a test says, and keeps what it was asked.
private final class ScriptedCommitter: StreamCommitter {
    private struct Script {
        var commits: [StreamCommit] = []
        var respond: @Sendable (StreamCommit) -> StreamCommitOutcome? = { _ in .committed(row: nil) }
        var settled = StreamCommitOutcome.unknown
    }

    private let script = Mutex(Script())

    var commits: [StreamCommit] { script.withLock { $0.commits } }

    /// - Parameter outcome: nil for an attempt that is never answered.
    func respond(_ outcome: @escaping @Sendable (StreamCommit) -> StreamCommitOutcome?) {
        script.withLock { $0.respond = outcome }
    }

    func settle(as outcome: StreamCommitOutcome) { script.withLock { $0.settled = outcome } }

    func commitEnd(_ commit: StreamCommit, answer: @escaping @Sendable (StreamCommitOutcome) -> Void) {
        let outcome = script.withLock { script in
            script.commits.append(commit)
            return script.respond(commit)
        }
        if let outcome { answer(outcome) }
    }

    func settleAttempt(_ key: StreamCommitKey, answer: @escaping @Sendable (StreamCommitOutcome) -> Void) {
        answer(script.withLock { $0.settled })
    }

    func forgetAttempt(_ key: StreamCommitKey) {}
}
