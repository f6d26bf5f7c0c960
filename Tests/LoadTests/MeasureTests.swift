import Testing

@testable import roost_load

@Suite struct MeasureTests {
    @Test func histogramsAreAddedUpThroughTheirDumps() {
        var one = LatencyHistogram(), other = LatencyHistogram(), both = LatencyHistogram()
        for value in stride(from: 1000 as UInt64, to: 50_000_000, by: 12_345) {
            if value.isMultiple(of: 2) { one.add(value) } else { other.add(value) }
            both.add(value)
        }
        var merged = LatencyHistogram()
        merged.add(one.dump)
        merged.add(other.dump)
        #expect(merged.count == both.count)
        #expect(merged.largest == both.largest)
        for share in [0, 0.5, 0.9, 0.99, 0.999, 1] {
            let (found, wanted) = (merged.quantile(share) ?? 0, both.quantile(share) ?? 0)
            #expect(abs(Double(found) - Double(wanted)) <= Double(wanted) * 0.002 + 128)
        }
    }

    @Test func nothingIsNoLatency() {
        #expect(LatencyHistogram().quantile(0.5) == nil)
        #expect(LatencyHistogram().dump.values.isEmpty)
        var histogram = LatencyHistogram()
        histogram.add(from: 10, to: 5)
        #expect(histogram.quantile(1) == 0)
    }

    @Test func onlyWhatWasDueInTheWindowIsMeasured() {
        var meter = Meter(primary: .broadcast)
        meter.window = 100..<200
        for due in [99, 100, 199, 200] as [UInt64] { meter.record(.broadcast, from: due, to: due + 1000, due: due) }
        #expect(meter.dumps[.broadcast]?.counts.reduce(0, +) == 2)
        #expect(meter.takeSecond().counts.reduce(0, +) == 2)
        #expect(meter.takeSecond().counts.isEmpty)
    }

    @Test func sharesAscendToOne() {
        for count in [1, 10, 1_000_000] {
            let shares = Quantiles.shares(count: count)
            #expect(shares == shares.sorted())
            #expect(shares.first == 0 && shares.last == 1)
            #expect([0.5, 0.9, 0.99, 0.999].allSatisfy(shares.contains))
        }
    }

    private func samples(_ memory: (Double) -> Double) -> [RunRecord.Sample] {
        (0..<200).map { second in
            var sample = RunRecord.Sample(seconds: Double(second), sockets: 1)
            let kilobytes = memory(Double(second))
            sample.processes = [RunRecord.Sample.Process(name: "hub", cpuPercent: 0, memoryKB: kilobytes)]
            return sample
        }
    }

    @Test func memoryThatGrowsIsNoticed() throws {
        let growing = try #require(MemoryTrend(samples { 1000 + 5 * $0 }, of: "hub"))
        #expect(abs(growing.slope - 5) < 0.001)
        #expect(growing.growthPercent > 25)
        let filled = try #require(MemoryTrend(samples { min(1500, 1000 + 10 * $0) }, of: "hub"))
        #expect(abs(filled.growthPercent) < 0.001)
        #expect(MemoryTrend(samples { $0 }, of: "other") == nil)
        #expect(MemoryTrend([], of: "hub") == nil)
    }

    @Test func troublesAreBounded() {
        var troubles = Troubles()
        for number in 0..<100 { troubles.add("was refused for reason \(number)") }
        troubles.add("was refused for reason 3")
        #expect(troubles.total == 101)
        #expect(troubles.sentences.count == 25)
        #expect(troubles.sentences.first == "76 × something else.")
        #expect(troubles.sentences.contains("2 × was refused for reason 3."))
    }

    @Test func rampsHoldBack() {
        var limiter = RampLimiter(atOnce: 2, perSecond: 10)
        #expect(limiter.opens(underWay: 2) == nil)
        limiter.passed(at: 1_000_000_000)
        #expect(limiter.opens(underWay: 1) == 1_000_000_000)
        limiter.passed(at: 1_000_000_000)
        #expect(limiter.opens(underWay: 1) == 1_100_000_000)
        var open = RampLimiter(atOnce: 1, perSecond: 0)
        open.passed(at: 5)
        #expect(open.opens(underWay: 0) == 0)
    }

    @Test func theSameSeedIsTheSameScript() throws {
        func actions() throws -> [ChatAction] {
            let target = try Target(url: "ws://127.0.0.1", path: nil)
            var plan = LoadPlan(scenario: .chat, target: target, dialect: Dialect(), run: 1, seed: 7, sockets: 20)
            (plan.rate, plan.seconds) = (10, 10)
            plan.chat = ChatPlan(members: 5, types: true, readers: 0.5, churn: 6)
            let roster = Roster(plan, worker: 0)
            var script = ChatScript(plan, roster, RowSchedule(plan, worker: 0, conversations: 4, of: 4), worker: 0)
            script.begin(at: 1_000_000_000)
            var actions: [ChatAction] = []
            while script.nextDue != .max {
                if let action = script.next(at: script.nextDue) { actions.append(action) }
            }
            return actions
        }
        let first = try actions()
        #expect(first == (try actions()))
        #expect(first.count { $0.kind == .typingBegins } > 70)
        #expect((120...280).contains(first.count { $0.kind == .receipt }))
        #expect(first.count { $0.kind == .departure } == 20)
        #expect(zip(first, first.dropFirst()).allSatisfy { $0.due <= $1.due || $1.kind == .typingBegins })
    }
}
