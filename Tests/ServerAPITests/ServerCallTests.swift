import Gateway
import HTTP
import Hub
import Testing
import Wire

@testable import ServerAPI

/// What requests of backends ask for.
@Suite struct ServerCallTests {
    @Test(arguments: ["/api/", "/realtime/v1/api/"]) func paths(_ prefix: String) {
        #expect(ServerRoute(path: prefix + "channels") == .channels)
        #expect(ServerRoute(path: prefix + "channels/room:1") == .channel(topic: "room:1"))
        #expect(ServerRoute(path: prefix + "channels/a/b/presence") == .presence(topic: "a/b"))
        #expect(ServerRoute(path: prefix + "channels/a/typing") == .typing(topic: "a"))
        #expect(ServerRoute(path: prefix + "channels/presence") == .channel(topic: "presence"))
        #expect(ServerRoute(path: prefix + "stats") == .stats)
        #expect(ServerRoute(path: prefix + "users/auth0|1/x") == .user("auth0|1/x"))
        #expect(ServerRoute(path: prefix + "users/ann/disconnect") == .disconnect(user: "ann"))
        #expect(ServerRoute(path: prefix + "users/ann/unsubscribe") == .unsubscribe(user: "ann"))
        #expect(ServerRoute(path: prefix + "users/ann/refresh") == .refresh(user: "ann"))
        for path in ["channel", "channels/", "users", "users/", "statistics", "broadcast/a/events/channels"] {
            #expect(ServerRoute(path: prefix + path) == nil, "\(path)")
        }
    }

    @Test func questionsComeBackAsTheyWere() {
        let key = ChannelKey(topic: "realtime:\"ä\u{1}", isPrivate: true)
        let questions: [ServerQuestion] = [
            .channels(prefix: "realtime:", after: nil, limit: 1), .channels(prefix: "", after: key, limit: 500),
            .channel(key), .user("u"), .stats, .disconnect("u"), .unsubscribe("u", key, seconds: nil),
            .unsubscribe("u", key, seconds: 60), .refresh("u"),
        ]
        for question in questions { #expect(ServerQuestion(question.encoded) == question) }
        for text in [
            "", "{}", "[]", #"{"ask":"others"}"#, #"{"ask":"user"}"#, #"{"ask":"channels","prefix":"","limit":501}"#,
        ] {
            #expect(ServerQuestion(Array(text.utf8)) == nil, "\(text)")
        }
    }

    @Test func partsComeBackAsTheyWere() throws {
        let key = ChannelKey(topic: "realtime:a", isPrivate: true)
        let connection = UserConnection(id: "0-1-2", seconds: 3, appState: .background, channels: [key])
        let parts: [ServerPart] = [
            .channels(
                ChannelPage(
                    channels: [ChannelCount(key: key, connections: 1, members: 2, typing: 3)], isCut: true, unlisted: 4)
            ),
            .user(.init(isOnline: true, count: 7, connections: [connection])),
            .stats(.init(connections: 5, memberships: 6)), .count(8), .full,
        ]
        for part in parts {
            let (decoded, cost) = try #require(ServerPart.decoded(part.encoded(cost: 77)))
            #expect(decoded == part && cost == 77)
        }
        #expect(ServerPart.decoded(Array("{}".utf8)) == nil)
    }

    @Test func cursorsComeBackAsTheyWereAndOthersDoNot() {
        for key in [
            ChannelKey(topic: "realtime:a", isPrivate: false), ChannelKey(topic: "realtime:äöü?>", isPrivate: true),
        ] {
            #expect(ChannelKey(cursor: key.cursor) == key)
            #expect(key.cursor.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) })
        }
        let place = PresencePage.Place(key: [0, 255, 1], ref: "abc-0-1")
        #expect(PresencePage.Place(cursor: place.cursor) == place)
        for text in ["", "!", "A", "Ag", "_w"] { #expect(ChannelKey(cursor: text) == nil, "\(text)") }
        for text in ["", "!", "YWJj"] { #expect(PresencePage.Place(cursor: text) == nil, "\(text)") }
    }

    // MARK: What one token may cost

    @Test func aTenthOfALoopIsGranted() {
        var budget = CallBudget()
        var (now, used): (Int64, Int) = (1_000_000, 0)
        // Calls of 5 ms each, as fast as they are granted, for a minute.
        let end = now + 60_000
        while now < end {
            switch budget.startCall(at: now) {
            case .granted:
                budget.endCall(cost: 5_000, at: now)
                used += 5_000
            case .spent(let seconds):
                #expect(seconds >= 1)
                now += 1
            case .tooManyOpen: Issue.record("none is open")
            }
        }
        // A second of it at once, and a tenth of what passes.
        #expect((6_900_000...7_100_000).contains(used), "\(used)")
    }

    @Test func soManyAreUnderWayAtOnce() {
        var budget = CallBudget()
        for _ in 0..<CallBudget.mostOpen { #expect(budget.startCall(at: 1) == .granted) }
        #expect(budget.startCall(at: 1) == .tooManyOpen)
        budget.endCall(cost: 0, at: 1)
        #expect(budget.startCall(at: 1) == .granted)
    }

    @Test func whoHasUsedItUpIsToldWhenToComeAgain() {
        var budget = CallBudget()
        #expect(budget.startCall(at: 0) == .granted)
        budget.endCall(cost: CallBudget.most + 450_000, at: 0)
        #expect(budget.startCall(at: 0) == .spent(5))
        #expect(budget.startCall(at: 4_400) == .spent(1))
        #expect(budget.startCall(at: 4_600) == .granted)
    }

    /// What hubs answer is added up, and it comes from Redis.
    @Test func figuresOfOtherHubsAreBounded() throws {
        let most = Int(1) << 53
        for text in [#"{"count":9223372036854775807,"cost":-9223372036854775808}"#, #"{"count":-9223372036854775808}"#]
        {
            let (part, cost) = try #require(ServerPart.decoded(Array(text.utf8)))
            #expect(part == .count(text.contains("8}") && !text.contains("cost") ? 0 : most) && cost == 0)
        }
        let stats = try #require(
            ServerPart.decoded(Array(#"{"stats":{"connections":9223372036854775807,"memberships":-1}}"#.utf8)))
        #expect(stats.part == .stats(ServerPart.HubCounts(connections: most, memberships: 0)))
    }
}
