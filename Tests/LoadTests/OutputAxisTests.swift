import Testing

@testable import roost_load

@Suite struct OutputAxisTests {
    @Test(
        arguments: [
            (0.9, [0, 0.2, 0.4, 0.6, 0.8, 1]), (1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (7, [0, 2, 4, 6, 8]),
            (100, [0, 20, 40, 60, 80, 100]), (101, [0, 50, 100, 150]), (0, [0, 1]), (-3, [0, 1]), (.infinity, [0, 1]),
        ] as [(Double, [Double])])
    func linearTicksAreRoundAndReachTheLargest(_ largest: Double, _ expected: [Double]) {
        let ticks = Ticks.linear(upTo: largest)
        #expect(ticks.count == expected.count)
        for (tick, value) in zip(ticks, expected) { #expect(abs(tick - value) < 1e-9) }
    }

    @Test(
        arguments: [
            (1.1e6, 8e6, [1e6, 2e6, 5e6, 1e7]), (1e6, 1e6, [1e6, 2e6]), (3, 30, [2, 5, 10, 20, 50]),
            (2e6, 5e6, [2e6, 5e6]),
            (9e6, 9.5e6, [5e6, 1e7]),
        ] as [(Double, Double, [Double])])
    func logarithmicTicksEncloseTheRange(_ least: Double, _ greatest: Double, _ expected: [Double]) {
        let ticks = Ticks.logarithmic(least...greatest)
        #expect(ticks.count == expected.count)
        for (tick, value) in zip(ticks, expected) { #expect(abs(tick / value - 1) < 1e-9) }
    }

    @Test(
        arguments: [
            (-8, 60, [0, 15, 30, 45, 60]), (0, 7200, [0, 1800, 3600, 5400, 7200]), (0, 3, [0, 1, 2, 3]),
            (5.5, 5.6, [5.5]),
        ] as [(Double, Double, [Double])])
    func timeTicksAreWholeMinutesAndSeconds(_ from: Double, _ to: Double, _ expected: [Double]) {
        #expect(Ticks.time(from...to) == expected)
    }

    @Test func scalesPlaceValuesBetweenTheirEnds() {
        let linear = Scale.linear(-10...30)
        #expect(linear.position(of: 0) == 0.25)
        #expect(linear.position(of: 99) == 1)
        #expect(linear.position(of: .nan) == 0)
        let logarithmic = Scale.logarithmic(1...10_000)
        #expect(abs(logarithmic.position(of: 100) - 0.5) < 1e-12)
        #expect(logarithmic.position(of: 0) == 0)
        #expect(Scale.linear(5...5).position(of: 5) == 0)
    }

    @Test func everyPowerOfTenOfSlowerValuesGetsTheSameRoom() {
        #expect(Axis.nines(of: 0, count: 1000) == 0)
        #expect(abs(Axis.nines(of: 0.99, count: 1000) - 2) < 1e-9)
        #expect(Axis.nines(of: 1, count: 1000) == 3)
        #expect(Axis.nines(of: 1, count: 0) == 0)
        let axis = Axis.percentile(upTo: 5)
        #expect(axis.ticks.map(\.label) == ["", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"])
        #expect(Axis.percentile(upTo: 0).scale.range == 0...1)
    }

    @Test func latencyLabelsHaveTheirUnit() {
        let few = Axis.latency(of: [900_000, 12_000_000])
        #expect(few.ticks.map(\.label) == ["500 µs", "1 ms", "2 ms", "5 ms", "10 ms", "20 ms"])
        let many = Axis.latency(of: [300, 2_000_000_000])
        #expect(many.ticks.map(\.label) == ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"])
        #expect(many.scale.range.lowerBound <= 300 && many.scale.range.upperBound >= 2e9)
        #expect(!Axis.latency(of: []).ticks.isEmpty)
        #expect(!Axis.latency(of: [0]).ticks.isEmpty)
    }

    @Test func memoryTicksAreRoundInTheUnitShown() {
        let axis = Axis.memory(of: [0, 145_000])
        #expect(axis.title == "memory, MB")
        #expect(axis.ticks.map(\.label) == ["0", "50", "100", "150"])
        #expect(axis.scale.range.upperBound == 150 * 1024)
    }
}
