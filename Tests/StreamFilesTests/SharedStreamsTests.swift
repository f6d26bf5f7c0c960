import Foundation
import Redis
import RedisFixtures
import StreamFiles
import Streams
import TestSupport
import Testing

/// Several services on one Redis, as several hubs have them.
@Suite(.serialized) struct SharedStreamsTests {
    private func stage(_ server: RedisFixture, _ node: String = "a") throws -> ServiceStage {
        let stage = try ServiceStage {
            $0.shared = SharedStreams(address: server.address, cluster: "test", node: node)
        }
        try isOpen(stage)
        return stage
    }

    private func isOpen(_ stage: ServiceStage) throws {
        try eventually("streams can be written") { try stage.statistics().shared?.isOpen == true }
    }

    /// What a reader is shown: a `touch` first, as readers of streams that are shared do.
    private func read(_ name: String, at stage: ServiceStage) throws -> String? {
        if try stage.ask(.touch, name).refusal == .notFound { return nil }
        return try stage.text(name)
    }

    @Test func whatOneAcknowledgedTheOtherHas() throws {
        let server = try RedisFixture()
        let (one, other) = (try stage(server, "a"), try stage(server, "b"))
        guard case .created(let made) = try one.create("a", body: "0") else {
            throw RedisFixtureError(description: "another answer")
        }
        guard case .existed(let same) = try other.create("a") else {
            throw RedisFixtureError(description: "another answer")
        }
        #expect(made.id == same.id)
        var text = "0"
        for number in 1...100 {
            try (number % 3 == 0 ? one : other).append("\(number)", to: "a")
            text += "\(number)"
            #expect(try read("a", at: number % 2 == 0 ? one : other) == text)
        }
        try one.append("!", to: "a", closes: true)
        #expect(try other.append("?", to: "a").refusal != nil)
        #expect(try read("a", at: other) == text + "!")
        try other.ask(.delete(nil), "a")
        #expect(try read("a", at: one) == nil && one.append("?", to: "a").refusal == .notFound)
        #expect(try other.files.filter { $0 != "epoch" } == [])
    }

    @Test func aServiceThatComesLaterHasAllOfIt() throws {
        let server = try RedisFixture()
        let one = try stage(server, "a")
        try one.create("a", "application/octet-stream")
        let piece = String(repeating: "0123456789", count: 150_000)
        for _ in 0..<4 { try one.append(piece, to: "a", by: nil) }
        let other = try stage(server, "b")
        #expect(try read("a", at: other) == piece + piece + piece + piece)
        // And one that was away for a while.
        let later = try one.afterKill()
        try isOpen(later)
        try other.append("more", to: "a")
        #expect(try read("a", at: later)?.hasSuffix("9more") == true)
    }

    @Test func whileRedisIsAwayNothingIsTakenAndThenNothingIsGone() throws {
        let server = try RedisFixture()
        let (one, other) = (try stage(server, "a"), try stage(server, "b"))
        try one.create("a", body: "kept")
        try other.create("b", body: "also")
        try other.create("gone", body: "x")
        #expect(try read("a", at: other) == "kept" && read("b", at: one) == "also")
        try other.ask(.delete(nil), "gone")
        #expect(try read("gone", at: one) == nil)
        server.kill()
        #expect(try one.append("lost", to: "a").refusal == .unavailable)
        #expect(try other.ask(.cancel(nil, by: nil), "a").refusal == .unavailable)
        // It has forgotten all.
        try server.start()
        try isOpen(one)
        try isOpen(other)
        #expect(try read("a", at: other) == "kept" && read("b", at: one) == "also" && read("gone", at: one) == nil)
        try other.append(", and more", to: "a")
        #expect(try read("a", at: one) == "kept, and more")
        // Whichever was there first.
        let returned = try [one, other].compactMap { try $0.statistics().shared?.returned }
        #expect(returned.reduce(0, +) > 0)
    }

    /// A hub that had not heard of the removal writes the stream back; one that knows of it removes it again.
    @Test func whatWasRemovedStaysSoWhereRedisForgotThatAndAHubNeverHeardIt() throws {
        let server = try RedisFixture()
        let one = try stage(server, "a")
        try one.create("gone", body: "x")
        let early = try one.afterKill { $0.shared = nil }
        try one.ask(.delete(nil), "gone")
        server.kill()
        try server.start()
        try isOpen(one)
        let late = try early.afterKill {
            $0.shared = SharedStreams(address: server.address, cluster: "test", node: "b")
        }
        try isOpen(late)
        try eventually("it is removed everywhere") { try read("gone", at: one) == nil && read("gone", at: late) == nil }
        #expect(try late.statistics().shared?.returned == 1 && one.files.allSatisfy { $0 == "epoch" })
    }

    /// One side goes on where the other does not know of it: bytes that were acknowledged at one place differ.
    @Test func whatTwoSidesWroteIsShownToNobodyAsOne() throws {
        let (server, second) = (try RedisFixture(), try RedisFixture())
        let one = try stage(server, "a")
        try one.create("a", body: "common ")
        try one.create("b", body: "common ")
        let other = try one.afterKill { $0.shared = SharedStreams(address: second.address, cluster: "test", node: "b") }
        try isOpen(other)
        #expect(try read("a", at: other) == "common ", "it is written back to a Redis that has none of it")
        try one.append("here", to: "a")
        try other.append("there", to: "a")
        try one.append("here", to: "b")
        let healed = try one.afterKill {
            $0.shared = SharedStreams(address: second.address, cluster: "test", node: "c")
        }
        try isOpen(healed)
        #expect(try read("a", at: healed) == nil && read("a", at: other) == nil)
        #expect(try healed.statistics().shared?.forked == 1)
        #expect(try read("b", at: other) == "common here", "one side's alone is the whole")
    }

    @Test func aStreamThatStallsAtOneStallsAtAll() throws {
        let server = try RedisFixture()
        let (one, other) = (try stage(server, "a"), try stage(server, "b"))
        try one.create("a", body: "x")
        let hold = StreamHold(loop: 0, serial: 1)
        try one.ask(.hold(hold), "a")
        #expect(try read("a", at: other) == "x" && other.status("a") == .open)
        try one.ask(.release(hold, isFault: true), "a")
        try eventually("it stalls") { try other.status("a") == .stalled }
        try other.append("y", to: "a")
        try eventually("it is open again") { try one.status("a") == .open }
    }

    @Test func aHubThatWasSilencedByAnEpochWritesNothing() throws {
        let server = try RedisFixture()
        let one = try stage(server, "a")
        try one.create("a", body: "x")
        // As a failover has it: another server's epoch, in which a log is shorter.
        _ = try server.session().runCommand("DEL", "{roost:test}:sm")
        let answer = try one.append("y", to: "a")
        #expect(answer.refusal == nil || answer.refusal == .unavailable)
        try isOpen(one)
        let before = try read("a", at: one) ?? ""
        try one.append("z", to: "a")
        #expect(try read("a", at: one) == before + "z")
        #expect(before == (answer.refusal == nil ? "xy" : "x"))
    }
}
