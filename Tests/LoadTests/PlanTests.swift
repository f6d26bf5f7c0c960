import Testing

@testable import roost_load

@Suite struct PlanTests {
    private func plan(_ scenario: Scenario, sockets: Int, workers: Int = 1) throws -> LoadPlan {
        let target = try Target(url: "ws://127.0.0.1:4000", path: nil)
        var plan = LoadPlan(
            scenario: scenario, target: target, dialect: Dialect(), run: 0xABC, seed: 1, sockets: sockets)
        plan.workers = workers
        return plan
    }

    @Test(arguments: [(10, 3), (1000, 7), (5, 5)])
    func sharesAreAllSocketsOnce(sockets: Int, workers: Int) throws {
        let plan = try plan(.idle, sockets: sockets, workers: workers)
        let shares = (0..<workers).map { Share(of: $0, plan) }
        #expect(shares.flatMap { $0.first..<($0.first + $0.count) } == Array(0..<sockets))
    }

    @Test(arguments: [(10, 1), (7, 3), (1000, 100), (3, 3)])
    func aSocketKnowsItsChannels(channels: Int, perSocket: Int) throws {
        var plan = try plan(.fanout, sockets: 50)
        (plan.channels, plan.channelsPerSocket) = (channels, perSocket)
        let map = ChannelMap(plan)
        for number in 0..<50 {
            let own = (0..<perSocket).map { map.channel($0, ofSocket: number) }
            #expect(Set(own).count == perSocket)
            for channel in 0..<channels {
                #expect(map.index(ofChannel: channel, onSocket: number) == own.firstIndex(of: channel))
            }
            #expect(map.index(ofChannel: channels, onSocket: number) == nil)
        }
    }

    @Test func conversationsInTurnAreThoseOfOneWorker() throws {
        var one = try plan(.changes, sockets: 103)
        one.channels = 10
        var three = one
        three.workers = 3
        let whole = Roster(one, worker: 0)
        #expect(whole.numbers == Array(0..<103))
        #expect(whole.members.map(\.count) == [11, 11, 11] + [Int](repeating: 10, count: 7))
        var numbers: [Int] = []
        for worker in 0..<3 {
            let roster = Roster(three, worker: worker)
            let all = (0..<3).reduce(0) { $0 + Roster.conversations(of: $1, three) }
            #expect(all == 10)
            let schedule = RowSchedule(three, worker: worker, conversations: roster.members.count, of: all)
            for (conversation, memberships) in roster.members.enumerated() {
                let stream = schedule.stream(of: conversation)
                #expect(memberships.map { roster.numbers[$0] % 10 }.allSatisfy { $0 == stream })
                #expect(schedule.conversation(ofStream: stream) == conversation)
            }
            numbers += roster.numbers
        }
        #expect(numbers.sorted() == Array(0..<103))
    }

    @Test func everySocketHasItsSeats() throws {
        var plan = try plan(.chat, sockets: 95, workers: 2)
        plan.chat = ChatPlan(members: 10, conversationsPerSocket: 3)
        for worker in 0..<2 {
            let roster = Roster(plan, worker: worker)
            #expect(roster.members.count == Roster.conversations(of: worker, plan))
            #expect(roster.conversations.allSatisfy { $0 >= 0 })
            #expect(roster.members.flatMap { $0 }.sorted() == Array(roster.conversations.indices))
            for memberships in roster.members {
                #expect((10...12).contains(memberships.count))
                #expect(Set(memberships.map { $0 / 3 }).count == memberships.count)
            }
            #expect(Roster(plan, worker: worker).members == roster.members)
        }
    }

    @Test func ticksAreDueInOpenLoop() {
        let steady = Schedule(rate: 1000, seconds: 2)
        #expect(steady.total == 2000)
        #expect(steady.offset(of: 500) == 500_000_000)
        #expect(steady.due(after: 0) == 1)
        #expect(steady.due(after: 999_999) == 1)
        #expect(steady.due(after: 1_000_000) == 2)
        #expect(steady.due(after: 10_000_000_000) == 2000)
        let bursts = Schedule(rate: 1000, burst: 4, seconds: 2)
        #expect((0..<8).map { bursts.offset(of: $0) } == [0, 0, 0, 0, 4_000_000, 4_000_000, 4_000_000, 4_000_000])
        #expect(bursts.due(after: 3_999_999) == 4)
        #expect(Schedule(rate: 0, seconds: 5).due(after: 1) == 0)
    }

    @Test func rowsOfAConversation() throws {
        var plan = try plan(.changes, sockets: 10)
        (plan.channels, plan.rate, plan.seconds) = (3, 10, 1)
        let schedule = RowSchedule(plan, worker: 0, conversations: 3, of: 3)
        #expect((0..<3).map { schedule.rows(in: $0, among: 10) } == [4, 3, 3])
        #expect((0..<3).map { schedule.rows(in: $0, among: 0) } == [0, 0, 0])
        #expect(schedule.tick(schedule.number(of: 7), in: schedule.conversation(of: 7)) == 7)
        #expect(schedule.uuid(of: 2) == "00000abc-0000-4000-8000-000000000002")
    }

    @Test func targets() throws {
        let plain = try Target(url: "ws://host:4000/socket/websocket?x=1", path: nil)
        #expect((plain.host, plain.port, plain.path) == ("host", 4000, "/socket/websocket?x=1"))
        #expect(try Target(url: "wss://host", path: nil).port == 443)
        #expect(try Target(url: "ws://host/a", path: "/b").path == "/b")
        #expect(throws: LoadFailure.self) { try Target(url: "http://host", path: nil) }
        #expect(throws: LoadFailure.self) { try Target(url: "ws://host:port", path: nil) }
        var asking = plain
        asking.query = "vsn=2.0.0"
        #expect(
            String(decoding: asking.request, as: UTF8.self).hasPrefix(
                "GET /socket/websocket?x=1&vsn=2.0.0 HTTP/1.1\r\n"))
    }

    @Test func rawFramesHaveEscapes() throws {
        #expect(try RawProtocol.bytes(#"SUB c{channel}\r\n\x00\\"#, channel: 12) == Array("SUB c12\r\n\0\\".utf8))
        #expect(try RawProtocol.bytes("{chan}", channel: 1) == Array("{chan}".utf8))
        for wrong in [#"\q"#, #"\x1"#, #"\xzz"#, #"\"#] {
            #expect(throws: LoadFailure.self) { try RawProtocol.bytes(wrong, channel: 0) }
        }
    }
}
