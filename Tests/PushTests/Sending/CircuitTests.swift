import Testing

@testable import Push

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
        bench.answer(403, "BadEnvironmentKeyInToken")
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
        var bench = try SenderBench { $0.waitsWhenKeyIsRefused = false }
        for number in 0..<8 { bench.add(try Samples.push(number)) }
        bench.connect()
        bench.answer(403, "Forbidden")
        #expect(bench.outcomes.map(\.outcome) == Array(repeating: .refused(status: 403, reason: "Forbidden"), count: 8))
        #expect(bench.transport.posts.count == 1)
    }
}
