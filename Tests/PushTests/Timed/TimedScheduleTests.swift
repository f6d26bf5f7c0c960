import Push
import Testing
import Wire

@Suite("When rows are looked for whose time has come")
struct TimedScheduleTests {
    private static let hour: Int64 = 3_600_000

    /// Does what a schedule wants, on a clock that goes on by a millisecond for each look.
    private func looks(
        _ schedule: inout TimedSchedule, from start: Int64, for length: Int64, life: Int64 = 24 * hour,
        took: Int64 = 0, nextDue: (Int64) -> Int64? = { _ in nil }
    ) -> [(at: Int64, look: TimedSchedule.Look)] {
        var now = start
        var looks: [(Int64, TimedSchedule.Look)] = []
        while now < start + length {
            guard let look = schedule.next(at: now, life: life) else {
                now = max(now + 1, schedule.nextAt)
                continue
            }
            looks.append((now, look))
            schedule.looked(look, began: now, isFull: false, nextDue: nextDue(now), at: now + took)
            now += took
        }
        return looks
    }

    @Test("once a second for what falls due, and as far back as the last look and a minute")
    func everySecond() {
        var schedule = TimedSchedule()
        let due = looks(&schedule, from: 0, for: 10_000).filter { !$0.look.isLate }
        #expect(due.map(\.at) == (0..<10).map { $0 * 1000 })
        #expect(due.map(\.look.oldest).first == TimedSchedule.overlap)
        #expect(due.dropFirst().allSatisfy { $0.look.oldest == TimedSchedule.overlap + 1000 })
        // The database was away.
        let after = schedule.next(at: 100_000, life: 24 * Self.hour)
        #expect(after?.oldest == TimedSchedule.overlap + 91_000)
    }

    @Test("as soon as the next row falls due")
    func atItsTime() {
        var schedule = TimedSchedule()
        let due = looks(&schedule, from: 0, for: 2000) { $0 < 300 ? 300 : nil }.filter { !$0.look.isLate }
        #expect(due.prefix(3).map(\.at) == [0, 300, 1300])
    }

    @Test("again at once where there may be more, of the same span")
    func full() throws {
        var schedule = TimedSchedule()
        let first = schedule.next(at: 5, life: Self.hour)
        let look = try #require(first)
        schedule.looked(look, began: 5, isFull: true, at: 6)
        let again = schedule.next(at: 6, life: Self.hour)
        #expect(again == look)
        // From the last row on that was found, but for a second.
        schedule.looked(look, began: 6, isFull: true, last: -3000, at: 7)
        let rest = schedule.next(at: 7, life: Self.hour)
        #expect(rest?.oldest == 3000 + 7 + 1000 && rest?.isLate == false)
        schedule.looked(try #require(rest), began: 7, isFull: false, at: 7)
        let next = schedule.next(at: 1007, life: Self.hour)
        #expect(next?.oldest == TimedSchedule.overlap + 1000)
    }

    @Test("a search for what is late that fails delays nothing that falls due")
    func lateFailure() throws {
        var schedule = TimedSchedule()
        let first = schedule.next(at: 0, life: 24 * Self.hour)
        schedule.looked(try #require(first), began: 0, isFull: false, at: 0)
        let second = schedule.next(at: 1, life: 24 * Self.hour)
        let late = try #require(second)
        #expect(late.isLate)
        schedule.failed(late, at: 1)
        #expect(schedule.nextAt <= 1000)
        let due = looks(&schedule, from: 2, for: 20_000).map(\.look)
        #expect(due.filter { !$0.isLate }.count == 20)
        #expect(due.first(where: \.isLate)?.youngest ?? 0 >= TimedSchedule.slice, "the next hour")
    }

    @Test("every instant of the time that counts is searched within one round, without a gap", arguments: [1, 24, 720])
    func wholeLife(hours: Int64) {
        var schedule = TimedSchedule()
        let life = hours * Self.hour - 7
        let late = looks(&schedule, from: 1_000_000, for: TimedSchedule.latePeriod - 1, life: life, took: 1)
            .filter(\.look.isLate)
        var covered: Int64 = 1_000_000
        for (at, look) in late {
            #expect(at - look.youngest >= covered, "from where the last one ended")
            covered = at - look.oldest
        }
        #expect(covered <= 1_000_000 - life + TimedSchedule.latePeriod)
        #expect(late.count == Int(hours))
    }

    @Test("a row that comes into sight late is found by the next round")
    func rounds() {
        var schedule = TimedSchedule()
        let newest = looks(&schedule, from: 0, for: 100_000).filter { $0.look.isLate && $0.look.youngest == 0 }.map(
            \.at)
        #expect(newest == [0, 30_000, 60_000, 90_000])
    }

    @Test("no table takes more than a tenth of the time")
    func pauses() {
        var schedule = TimedSchedule()
        let looks = looks(&schedule, from: 0, for: 600_000, took: 500) { $0 }
        let due = looks.filter { !$0.look.isLate }
        #expect(zip(due.dropFirst(), due.dropFirst(2)).allSatisfy { $1.at - $0.at >= 5000 })
        #expect(looks.count * 500 <= 600_000 / 5, "a tenth for either kind of look")
    }

    @Test("one look that took long delays none that follows")
    func oneLongLook() {
        var schedule = TimedSchedule()
        _ = looks(&schedule, from: 0, for: 3000)
        schedule.looked(.init(oldest: 0, youngest: 0, isLate: false), began: 3000, isFull: false, at: 3900)
        #expect(schedule.nextAt <= 4900)
    }

    @Test("what fails is tried again, ever more seldom up to a quarter of a minute")
    func failures() {
        var schedule = TimedSchedule()
        var now: Int64 = 0
        var pauses: [Int64] = []
        for _ in 0..<7 {
            let look = schedule.next(at: now, life: Self.hour)
            #expect(look != nil)
            schedule.failed(at: now)
            pauses.append(schedule.nextAt - now)
            now = schedule.nextAt
        }
        #expect(pauses == [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000])
        let look = schedule.next(at: now, life: Self.hour)
        #expect(look?.oldest == min(Self.hour, TimedSchedule.overlap))
    }

    @Test("one user is alerted of so many rows in a minute, whatever others are")
    func budget() {
        var budget = TimedBudget()
        let most = TimedBudget.mostPerMinute
        func admitted(_ user: Name, at now: Int64, of count: Int = 1000) -> Int {
            (0..<count).reduce(0) { sum, _ in sum + (budget.admit(user, at: now) ? 1 : 0) }
        }
        #expect(admitted("mallory", at: 5) == most)
        #expect(admitted("ann", at: 5) == most)
        // Names are bytes.
        #expect(admitted("jose\u{301}", at: 5) == most)
        #expect(admitted("jos\u{e9}", at: 5) == most)
        #expect(admitted("mallory", at: 60_004) == 0)
        #expect(admitted("mallory", at: 60_005) == most)
    }
}
