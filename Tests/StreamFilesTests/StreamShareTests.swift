import Foundation
import RedisFixtures
import StreamFiles
import Streams
import Testing
import Wire

/// How much room one user's streams may take of everybody's.
@Suite(.serialized) struct StreamShareTests {
    private let ann = StreamOwner.user("ann"), bob = StreamOwner.user("bob")

    @discardableResult private func create(
        _ stage: ServiceStage, _ name: String, by owner: StreamOwner?, body: String = "", isOpen: Bool = false
    ) throws -> StreamRefusal? {
        try stage.create(name, body: body, closes: !isOpen) { $0.owner = owner }.refusal
    }

    private func there(_ stage: ServiceStage, _ names: [String]) throws -> [String] {
        try names.filter { try stage.status($0) != nil }
    }

    /// The attack: as many as there may be, and nobody else's go.
    @Test func oneUsersStreamsPushOutOnlyHisOwn() throws {
        let stage = try ServiceStage {
            $0.limits.count = 40
            $0.limits.countPerUser = 20
        }
        try create(stage, "bob", by: bob)
        try create(stage, "backend", by: nil)
        for number in 0..<200 { #expect(try create(stage, "ann/\(number)", by: ann) == nil) }
        #expect(try there(stage, ["bob", "backend", "ann/0", "ann/199"]) == ["bob", "backend", "ann/199"])
        #expect(try create(stage, "next", by: nil, isOpen: true) == nil)
        // What is open stays, so he has to end some himself, and nobody else has.
        for number in 0..<20 { #expect(try create(stage, "open/\(number)", by: ann, isOpen: true) == nil) }
        #expect(try create(stage, "open/20", by: ann) == .overShare(limit: "streams.count_per_user"))
        #expect(try create(stage, "bob/2", by: bob) == nil && create(stage, "backend/2", by: nil) == nil)
        try stage.ask(.cancel(nil, by: nil), "open/3")
        #expect(try create(stage, "open/20", by: ann) == nil)
        #expect(try stage.statistics().refused[.share] == 1)
    }

    @Test func bytesAreCountedToo() throws {
        let stage = try ServiceStage { $0.limits.bytesPerUser = 100 }
        let forty = String(repeating: "x", count: 40)
        try create(stage, "a", by: ann, body: forty)
        try create(stage, "b", by: ann, body: forty, isOpen: true)
        #expect(try create(stage, "c", by: ann, body: forty, isOpen: true) == nil)
        #expect(try there(stage, ["a", "b", "c"]) == ["b", "c"])
        #expect(try create(stage, "d", by: ann, body: forty) == .overShare(limit: "streams.bytes_per_user"))
        // Whoever appends: it is the stream of whoever made it.
        #expect(try stage.append(forty, to: "b").refusal == .overShare(limit: "streams.bytes_per_user"))
        #expect(try stage.append("20 bytes more are in", to: "b").refusal == nil)
        #expect(try create(stage, "e", by: bob, body: forty) == nil)
        #expect(try create(stage, "f", by: nil, body: forty + forty + forty) == nil)
        // What is deleted, and what was refused, is not counted.
        try stage.ask(.delete(nil), "b")
        #expect(try create(stage, "g", by: ann, body: forty + "20 bytes more are in", isOpen: true) == nil)
        #expect(try create(stage, "h", by: ann, body: "x") == .overShare(limit: "streams.bytes_per_user"))
    }

    /// All of an attacker's accounts together take what others have only as far as they have as much.
    @Test func whoHasMostGivesWay() throws {
        let stage = try ServiceStage {
            $0.limits.count = 32
            $0.limits.countPerUser = 10
        }
        try create(stage, "bob", by: bob)
        for number in 0..<4 { try create(stage, "backend/\(number)", by: nil) }
        for account in 0..<20 {
            for number in 0..<10 {
                #expect(try create(stage, "\(account)/\(number)", by: .user(Name("\(account)"))) == nil)
            }
        }
        #expect(try stage.status("bob") != nil, "though it ended before all others")
        for number in 0..<4 { #expect(try stage.status("backend/\(number)") != nil) }
        #expect(try stage.statistics().streams <= 32)
    }

    @Test func aQuarterIsTheBackends() throws {
        let stage = try ServiceStage {
            $0.limits.count = 16
            $0.limits.countPerUser = 5
        }
        for number in 0..<12 {
            #expect(try create(stage, "u/\(number)", by: .user(Name("\(number / 5)")), isOpen: true) == nil)
        }
        #expect(try create(stage, "u/12", by: .user("2"), isOpen: true) == .tooMuch(limit: "streams.count"))
        for number in 0..<4 { #expect(try create(stage, "backend/\(number)", by: nil, isOpen: true) == nil) }
        #expect(try create(stage, "backend/4", by: nil) == .tooMuch(limit: "streams.count"))
    }

    @Test func namesAreComparedByteByByte() throws {
        let stage = try ServiceStage { $0.limits.countPerUser = 1 }
        #expect(try create(stage, "a", by: .user("Jos\u{e9}"), isOpen: true) == nil)
        #expect(try create(stage, "b", by: .user("Jose\u{301}"), isOpen: true) == nil)
        #expect(try create(stage, "c", by: .role("Jos\u{e9}"), isOpen: true) == nil)
        #expect(try create(stage, "d", by: .role("Jos\u{e9}")) == .overShare(limit: "streams.count_per_user"))
    }

    @Test func itIsKnownWhoseTheyAreAfterAKill() throws {
        let stage = try ServiceStage { $0.limits.countPerUser = 2 }
        for name in ["a", "b"] { try create(stage, name, by: ann, isOpen: true) }
        try create(stage, "c", by: .role("anon"), isOpen: true)
        let next = try stage.afterKill()
        #expect(try create(next, "d", by: ann) == .overShare(limit: "streams.count_per_user"))
        #expect(try create(next, "e", by: .role("anon"), isOpen: true) == nil)
        #expect(try create(next, "f", by: .role("anon")) == .overShare(limit: "streams.count_per_user"))
    }

    /// Each of several hubs has all streams, and knows whose they are.
    @Test func severalHubsCountTogether() throws {
        let server = try RedisFixture()
        let stages = try ["a", "b"].map { node in
            try ServiceStage {
                $0.shared = SharedStreams(address: server.address, cluster: "test", node: node)
                $0.limits.countPerUser = 4
            }
        }
        for stage in stages {
            try eventually("streams can be written") { try stage.statistics().shared?.isOpen == true }
        }
        for number in 0..<4 { try create(stages[number % 2], "ann/\(number)", by: ann, isOpen: number > 0) }
        for number in 0..<4 {
            try eventually("the other hub has it") { try stages[1 - number % 2].status("ann/\(number)") != nil }
        }
        #expect(try create(stages[1], "ann/4", by: ann, isOpen: true) == nil, "the one that ended gave way")
        try eventually("it is gone everywhere") { try stages[0].status("ann/0") == nil }
        try eventually("the new one is there") { try stages[0].status("ann/4") != nil }
        for stage in stages {
            #expect(try create(stage, "ann/5", by: ann) == .overShare(limit: "streams.count_per_user"))
            #expect(try create(stage, "bob/\(UUID())", by: bob) == nil)
        }
    }
}
