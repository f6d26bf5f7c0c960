import Testing

@testable import roost_load

@Suite struct OutputStretchTests {
    private func points(_ count: Int) -> [Series.Point] {
        (0..<count).map { .init(x: Double($0), y: Double($0 % 7)) }
    }

    @Test func everyPointIsInOneStretch() {
        for count in [0, 1, 5, 100] {
            let parts = Stretch.split(points(count), into: 10, over: 0...99)
            #expect(parts.count == 10)
            #expect(parts.flatMap { Array($0) } == points(count))
        }
    }

    @Test func peaksAndDipsSurvive() throws {
        var long = points(5000)
        long[1234].y = 1e6
        long[4321].y = -1e6
        let stretches = Stretch.split(long, into: 180, over: 0...4999).compactMap(Stretch.init)
        #expect(stretches.map(\.greatest).max() == 1e6)
        #expect(stretches.map(\.least).min() == -1e6)
        #expect(stretches.map(\.median).max() == 3)
    }

    @Test func whatIsMissingIsNoZero() {
        #expect(Stretch([Series.Point(x: 1, y: nil)][...]) == nil)
        #expect(Stretch([]) == nil)
        #expect(Stretch([.init(x: 1, y: nil), .init(x: 3, y: 5)][...])?.least == 5)
    }

    @Test func aLongRunIsDrawnInStretchesAndSaysSo() {
        let page = ReportPage(OutputExample.run(samples: 2000)).markup.source
        #expect(page.contains("class=\"band s0\""))
        #expect(page.contains("Drawn in stretches of 11 s"))
        #expect(page.utf8.count < 400_000)
        let short = ReportPage(OutputExample.run(samples: 60)).markup.source
        #expect(!short.contains("class=\"band"))
        #expect(!short.contains("Drawn in stretches"))
    }

    @Test func linesBreakAtGapsAndLonePointsShow() {
        var path = PlotPath()
        path.line(to: 1, 2)
        path.line(to: 3, 4)
        path.lift()
        path.line(to: 5, 6)
        #expect(path.markup.source == "M1.0 2.0h0L3.0 4.0M5.0 6.0h0")
    }
}
