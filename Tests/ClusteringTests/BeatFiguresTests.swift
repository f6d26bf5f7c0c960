import Testing

@testable import Clustering

@Suite struct BeatFiguresTests {
    @Test func areReadByTheirPosition() {
        var figures = BeatFigures()
        (figures.connections, figures.age, figures.said) = (1, 2, 3)
        (figures.heard, figures.behind, figures.gaps) = (4, 5, 6)
        #expect(figures.list == [1, 2, 3, 4, 5, 6])
        #expect(BeatFigures(figures.list + [7]) == figures, "a newer hub says more")
        let older = BeatFigures([9])
        #expect(older.connections == 9 && older.said == nil && older.gaps == nil)
        #expect(BeatFigures([.max]).connections == 1 << 53, "nobody can make a page fail, and sums of them fit")
    }

    @Test func aRateIsThatOfTheLastSecond() {
        var rate = BeatRate()
        #expect(rate.updateRate(100, at: 0) == 0)
        #expect(rate.updateRate(150, at: 500) == 100)
        #expect(rate.updateRate(200, at: 1000) == 100)
        #expect(rate.updateRate(200, at: 1500) == 50)
        #expect(rate.updateRate(200, at: 2000) == 0)
        #expect(rate.updateRate(200, at: 2000) == 0, "the same moment again")
        #expect(rate.updateRate(5, at: 2500) == 0, "never negative")
    }

    @Test func aRateOfWhateverCountDoesNotOverflow() {
        var rate = BeatRate()
        #expect(rate.updateRate(0, at: 0) == 0)
        #expect(rate.updateRate(.max, at: 1) == .max)
    }
}
