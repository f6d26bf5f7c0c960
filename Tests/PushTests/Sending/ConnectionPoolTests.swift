import Hub
import Testing

@testable import Push

struct ConnectionTests {
    @Test func oneAtATimeUntilTheFirstAnswerThenAsManyAsThePeerAllows() throws {
        var bench = try SenderBench()
        for number in 0..<50 { bench.add(try Samples.push(number)) }
        #expect(bench.transport.opened.count == 1 && bench.inFlight == 0)
        bench.connect()
        #expect(bench.inFlight == 1)
        bench.transport.limit = 20
        bench.answer(200)
        #expect(bench.inFlight == 20)
        bench.transport.limit = 5
        bench.takeAll()
        #expect(bench.inFlight == 5 && bench.transport.opened.count == 1)
        bench.transport.limit = 1000
        bench.takeAll()
        bench.takeAll()
        #expect(bench.outcomes.count == 50)
    }

    @Test func afterAGoAwayThoseUnseenGoOnAnotherConnection() throws {
        var bench = try SenderBench()
        for number in 0..<11 { bench.add(try Samples.push(number, type: .liveActivity)) }
        bench.connect()
        bench.answer(200)
        let tickets = (bench.transport.onTheirWay[1] ?? [:]).keys.sorted()
        bench.transport.events.append((1, .goAway(why: "Shutdown")))
        for ticket in tickets.suffix(4) where bench.transport.land(ticket, 1) != nil {
            bench.transport.events.append((1, .unseen(ticket)))
        }
        bench.turn()
        #expect(bench.transport.opened.count == 2 && bench.outcomes.count == 1)
        bench.connect()
        while bench.inFlight > 0 { bench.takeAll() }
        #expect(bench.outcomes.count == 11 && bench.outcomes.allSatisfy { $0.outcome == .delivered })
        // Six were answered on the old connection, four went again, once.
        #expect(bench.transport.posts.count == 15 && bench.transport.closed == [1])
    }

    @Test func twoTimeoutsInARowRetireAConnection() throws {
        var bench = try SenderBench { $0.limits.pingTimeout = .seconds(100) }
        bench.add(try Samples.push(0))
        bench.connect()
        bench.answer(200)
        bench.add(try Samples.push(1, type: .liveActivity), try Samples.push(2))
        bench.pass(seconds: 20)
        #expect(bench.outcomes.map(\.outcome) == [.delivered, .unanswered])
        #expect(bench.sender.counts.connectionsRetired == 1 && bench.transport.opened.count == 2)
        bench.connect()
        bench.answer(200)
        #expect(bench.outcomes.last?.outcome == .delivered)
        #expect((bench.sender.counts.ambiguous, bench.sender.counts.retries) == (2, 1))
        #expect(bench.transport.posts.map(\.connection) == [1, 1, 1, 2])
    }

    @Test func aPeerThatIsFrozenIsAskedAndGivenUp() throws {
        var bench = try SenderBench()
        bench.add(try Samples.push(0))
        bench.connect()
        bench.answer(200)
        bench.add(try Samples.push(1))
        bench.pass(seconds: 10)
        #expect(bench.transport.pings == [1])
        bench.tell(.pong, on: 1)
        #expect(bench.transport.closed.isEmpty)
        bench.pass(seconds: 10)
        // It answered the ping, so only the one push was given up, not the connection.
        #expect(bench.transport.closed.isEmpty && bench.transport.posts.count == 3)
        bench.pass(seconds: 10)
        bench.pass(seconds: 5)
        #expect(bench.transport.closed == [1] && bench.transport.opened.count == 2)
    }

    @Test func anIdleConnectionIsAskedAfterAnHour() throws {
        var bench = try SenderBench()
        bench.add(try Samples.push(0))
        bench.connect()
        bench.answer(200)
        bench.pass(seconds: 3599)
        #expect(bench.transport.pings.isEmpty)
        #expect(bench.sender.nextDue(at: bench.now) == bench.now.monotonic + 1000)
        bench.pass(seconds: 1)
        #expect(bench.transport.pings == [1])
        bench.pass(seconds: 5)
        #expect(bench.transport.closed == [1] && bench.transport.opened.count == 1)
    }

    @Test func connectsAgainWithinFifteenSecondsAndSaysSoOnce() throws {
        var bench = try SenderBench()
        bench.add(try Samples.push(0, seconds: 86_400))
        for _ in 0..<3600 {
            if let last = bench.transport.opened.last, bench.sender.servers[last.connection] != nil {
                bench.tell(.closed(why: "nothing accepts connections there"), on: last.connection)
            }
            bench.pass(seconds: 1)
        }
        // Full jitter under 15 s: every 8 s in the mean.
        #expect((300...900).contains(bench.transport.opened.count))
        #expect(bench.notices.count { $0.level == .warning } == 1)
    }

    @Test func whatWaitsWhenTheClientIsStoppedIsToldSo() throws {
        var bench = try SenderBench()
        for number in 0..<3 { bench.add(try Samples.push(number)) }
        bench.connect()
        bench.sender.stop()
        bench.turn()
        #expect(bench.outcomes.map(\.outcome) == [.stopped, .stopped])
        bench.sender.abandon()
        bench.turn()
        #expect(bench.outcomes.last?.outcome == .unanswered)
    }
}

struct CircuitTests {
    /// One probe a minute, one line in the log, and all goes on when the key is good again.
    @Test func opensSaysWhatToDoAndRecovers() throws {
        var bench = try SenderBench()
        for number in 0..<20 { bench.add(try Samples.push(number)) }
        bench.connect()
        bench.answer(403, "InvalidProviderToken")
        for _ in 0..<600 {
            bench.pass(seconds: 1)
            bench.answer(403, "InvalidProviderToken")
        }
        #expect((10...11).contains(bench.transport.posts.count))
        let errors = bench.notices.filter { $0.level == .error }.map(\.text)
        #expect(errors.count == 1)
        #expect(
            ["InvalidProviderToken", "KEY4567890", "TEAM567890", "sandbox"].allSatisfy {
                errors.first?.contains($0) == true
            })
        #expect(bench.sender.statistics(at: bench.now).circuitsOpen == ["sandbox": "InvalidProviderToken"])
        for _ in 0..<61 {
            bench.pass(seconds: 1)
            bench.takeAll()
        }
        #expect(bench.outcomes.count == 20 && bench.outcomes.allSatisfy { $0.outcome == .delivered })
        #expect(bench.sender.statistics(at: bench.now).circuitsOpen.isEmpty && bench.notices.last?.level == .notice)
    }

    @Test func isAnEnvironmentsOwn() throws {
        var bench = try SenderBench()
        bench.add(try Samples.push(1))
        bench.connect()
        bench.answer(403, "InvalidProviderToken")
        bench.add(try Samples.push(2, environment: .production))
        bench.connect()
        bench.answer(200)
        #expect(bench.outcomes.map(\.push.target.environment) == [.production])
    }

    @Test func namesAClockThatIsWrong() throws {
        for (seconds, word) in [(-4500, "ahead of"), (4500, "behind")] as [(Int64, String)] {
            var bench = try SenderBench()
            bench.add(try Samples.push())
            bench.connect()
            bench.answer(403, "ExpiredProviderToken", date: bench.now.unix + seconds * 1000)
            let text = bench.notices.last?.text ?? ""
            #expect(text.contains("clock is 4500 s \(word)"))
        }
    }

    @Test func whoSendsByHandIsToldAtOnce() throws {
        var bench = try SenderBench { $0.limits.waitsWhenKeyIsRefused = false }
        for number in 0..<8 { bench.add(try Samples.push(number)) }
        bench.connect()
        bench.answer(403, "Forbidden")
        #expect(bench.outcomes.map(\.outcome) == Array(repeating: .refused(status: 403, reason: "Forbidden"), count: 8))
        #expect(bench.transport.posts.count == 1)
    }
}
