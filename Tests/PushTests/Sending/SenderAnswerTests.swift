import Testing

@testable import Push

/// What becomes of a notification that is answered so once, and taken if it is sent again.
struct SenderAnswerTests {
    @Test(arguments: [
        (200, "", PushOutcome.delivered, 1), (410, "Unregistered", .unregistered(since: 5), 1),
        (410, "ExpiredToken", .unregistered(since: 5), 1),
        (400, "BadDeviceToken", .delivered, 2), (403, "BadEnvironmentKeyInToken", .delivered, 2),
        (400, "DeviceTokenNotForTopic", .badToken(reason: "DeviceTokenNotForTopic"), 1),
        (400, "BadCollapseId", .refused(status: 400, reason: "BadCollapseId"), 1),
        (400, "TopicDisallowed", .refused(status: 400, reason: "TopicDisallowed"), 1),
        (404, "BadPath", .refused(status: 404, reason: "BadPath"), 1),
        (405, "MethodNotAllowed", .refused(status: 405, reason: "MethodNotAllowed"), 1),
        (413, "PayloadTooLarge", .refused(status: 413, reason: "PayloadTooLarge"), 1),
        (418, "nobody knows", .refused(status: 418, reason: "nobody knows"), 1),
        (400, "IdleTimeout", .delivered, 2), (403, "UnrelatedKeyIdInToken", .delivered, 2),
        (403, "ExpiredProviderToken", .delivered, 2), (403, "InvalidProviderToken", .delivered, 2),
        (403, "MissingProviderToken", .delivered, 2), (403, "Forbidden", .delivered, 2),
        (403, "BadEnvironmentKeyIdInToken", .delivered, 2), (429, "TooManyRequests", .delivered, 2),
        (429, "TooManyProviderTokenUpdates", .delivered, 2), (500, "InternalServerError", .delivered, 2),
        (503, "ServiceUnavailable", .delivered, 2), (503, "Shutdown", .delivered, 2),
    ])
    func endsAsItShould(_ status: Int, _ reason: String, _ outcome: PushOutcome, _ sent: Int) throws {
        var bench = try SenderBench()
        let push = try Samples.push()
        bench.add(push)
        bench.connect()
        bench.answer(status, reason, timestamp: 5)
        for _ in 0..<180 where bench.outcomes.isEmpty {
            bench.pass(seconds: 1)
            bench.connect()
            bench.takeAll()
        }
        #expect(bench.outcomes.map(\.outcome) == [outcome])
        #expect(bench.transport.posts.count == sent)
        #expect(Set(bench.transport.posts.map(\.request.push.id)) == [push.id])
        #expect(bench.sender.dialect.credentialsMade == 1)
        #expect(
            bench.sender.counts.refused
                == (status == 200 ? [:] : [KnownReasons.apns.name(of: Answer(status: status, reason: reason)): 1]))
    }

    @Test func aTokenThatIsTooOldIsMadeAnewOnce() throws {
        var bench = try SenderBench()
        bench.add(try Samples.push())
        bench.connect()
        bench.takeAll()
        bench.pass(seconds: 21 * 60)
        for number in 1...50 { bench.add(try Samples.push(number)) }
        for (connection, requests) in bench.transport.onTheirWay {
            for ticket in requests.keys where bench.transport.land(ticket, connection) != nil {
                bench.transport.events.append(
                    (connection, .answered(ticket, Answer(status: 403, reason: "ExpiredProviderToken"))))
            }
        }
        bench.turn()
        bench.takeAll()
        #expect(bench.outcomes.count == 51 && bench.outcomes.allSatisfy { $0.outcome == .delivered })
        #expect(bench.sender.dialect.credentialsMade == 2 && bench.transport.posts.count == 101)
        #expect(bench.notices.allSatisfy { $0.level < .warning })
    }

    @Test func whoIsBusyIsLeftAloneLongerEachTime() throws {
        var bench = try SenderBench()
        for number in 0..<200 { bench.add(try Samples.push(number, seconds: 86_400)) }
        bench.connect()
        bench.takeAll()
        bench.takeAll()
        for number in 200..<400 { bench.add(try Samples.push(number, seconds: 86_400)) }
        // Two hours of 503, of which the server sees little.
        for _ in 0..<7200 {
            bench.pass(seconds: 1)
            for (connection, requests) in bench.transport.onTheirWay {
                for ticket in requests.keys.sorted() where bench.transport.land(ticket, connection) != nil {
                    bench.tell(.answered(ticket, Answer(status: 503, reason: "ServiceUnavailable")), on: connection)
                }
            }
        }
        #expect((210...500).contains(bench.transport.posts.count - 200))
        #expect(bench.notices.count { $0.level == .warning } == 1)
        for _ in 0..<40 {
            bench.pass(seconds: 60)
            while bench.inFlight > 0 { bench.takeAll() }
        }
        #expect(bench.outcomes.count == 400 && bench.outcomes.allSatisfy { $0.outcome == .delivered })
    }
}
