import Foundation
import TestSupport
import Testing
import Wire

@Suite struct CivilDateTests {
    @Test(arguments: [
        (1970, 1, 1, 0), (1969, 12, 31, -1), (2000, 1, 1, 10_957), (2000, 2, 29, 11_016), (2000, 3, 1, 11_017),
        (0, 3, 1, -719_468), (-4713, 11, 24, -2_440_588),
    ])
    func knownDays(_ year: Int, _ month: Int, _ day: Int, _ days: Int) {
        let date = CivilDate(year: year, month: month, day: day)
        #expect(date.daysSince1970 == days)
        #expect(CivilDate(daysSince1970: days) == date)
        #expect(date.exists)
    }

    @Test(arguments: [
        (2026, 0, 1), (2026, 13, 1), (2026, 1, 0), (2026, 1, 32), (2026, 2, 29), (1900, 2, 29), (2000, 2, 30),
        (2026, 4, 31),
    ])
    func daysThatDoNotExist(_ year: Int, _ month: Int, _ day: Int) {
        #expect(!CivilDate(year: year, month: month, day: day).exists)
    }

    /// Every day of more than an era of 400 years follows the one before.
    @Test func daysFollowEachOther() {
        var before = CivilDate(daysSince1970: -80_000)
        for days in -79_999..<80_000 {
            let date = CivilDate(daysSince1970: days)
            let isNext =
                date.day == 1
                ? before.day >= 28 && (date.month == before.month + 1 || (date.month == 1 && before.month == 12))
                : date.day == before.day + 1 && date.month == before.month
            guard isNext, date.exists, date.daysSince1970 == days else {
                Issue.record("\(date) follows \(before)")
                return
            }
            before = date
        }
    }
}

@Suite struct CivilTimeTests {
    @Test func agreesWithFoundation() {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        var random = SeededGenerator(seed: 8601)
        for _ in 0..<300 {
            // From 1901 to 2099.
            let milliseconds = random.below(6_279_811_200_000) - 2_177_452_800_000
            let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000 + 0.0001)
            #expect(CivilTime(millisecondsSince1970: milliseconds).text == date.formatted(style))
        }
    }

    @Test func parts() {
        let time = CivilTime(secondsSince1970: 1_763_819_000)
        #expect(time.day == "2025-11-22" && time.clock == "13:43:20")
        #expect(CivilTime(millisecondsSince1970: -1).text == "1969-12-31T23:59:59.999Z")
    }
}
