import Ops
import Testing

@Suite("What systemd is told")
struct ServiceReportTests {
    private var report = ServiceReport(watchdog: .seconds(15))

    private mutating func lines(_ problem: String?, at second: Int, beats: [Int] = []) -> [String] {
        report.lines(.init(problem: problem, beats: beats, age: .seconds(second)))
    }

    @Test mutating func readyWhenRowChangesFlowAndOnlyOnce() {
        #expect(lines("connecting to the database", at: 0) == ["STATUS=not ready: connecting to the database"])
        #expect(lines("connecting to the database", at: 1) == [])
        #expect(lines(nil, at: 2) == ["READY=1", "STATUS=row changes flow"])
        #expect(lines(nil, at: 3) == [])
        #expect(lines("the database is away", at: 4) == ["STATUS=not ready: the database is away"])
        #expect(lines(nil, at: 5) == ["STATUS=row changes flow"])
    }

    @Test mutating func readyWithoutADatabaseWhenThePatienceIsOver() {
        _ = lines("no route to host", at: 0)
        #expect(lines("no route to host", at: 9) == [])
        #expect(lines("no route to host", at: 10) == ["READY=1"])
        #expect(lines(nil, at: 11) == ["STATUS=row changes flow"])
    }

    @Test mutating func whatPostgresSaysIsOneLineAndSetsNothing() {
        #expect(lines("no\nREADY=1\r\nSTATUS=fine", at: 0) == ["STATUS=not ready: no READY=1 STATUS=fine"])
    }

    @Test mutating func aliveWhenEveryLoopHasTurned() {
        _ = lines(nil, at: 0, beats: [0, 0])
        #expect(lines(nil, at: 14, beats: [14, 14]) == [])
        #expect(lines(nil, at: 15, beats: [15, 14]) == ["WATCHDOG=1"])
        #expect(lines(nil, at: 29, beats: [29, 14]) == [])
        #expect(lines(nil, at: 30, beats: [30, 14]) == [], "the second loop stands still")
        #expect(lines(nil, at: 32, beats: [32, 14]) == ["STATUS=row changes flow; event loop 1 does not turn"])
        #expect(lines(nil, at: 33, beats: [33, 15]) == ["STATUS=row changes flow", "WATCHDOG=1"])
    }

    @Test mutating func nobodyWhoDoesNotAskHearsThatItIsAlive() {
        report = ServiceReport(watchdog: nil)
        _ = lines(nil, at: 0, beats: [0])
        #expect(lines(nil, at: 1000, beats: [0]) == [])
    }

    @Test mutating func aReload() {
        _ = lines(nil, at: 0)
        #expect(report.reloads(at: 123) == ["RELOADING=1", "MONOTONIC_USEC=123"])
        let standing = ServiceReport.Standing(problem: nil, beats: [], age: .seconds(1))
        #expect(
            report.reloaded("configuration reloaded", standing)
                == ["READY=1", "STATUS=row changes flow; configuration reloaded"])
        #expect(lines(nil, at: 2) == [])
    }

    @Test mutating func aReloadBeforeTheHubIsReadyDoesNotSayThatItIs() {
        _ = lines("connecting", at: 0)
        #expect(report.reloads(at: 123) == [])
        let standing = ServiceReport.Standing(problem: "connecting", beats: [], age: .seconds(1))
        #expect(report.reloaded("reloaded", standing) == ["STATUS=not ready: connecting; reloaded"])
    }

    @Test mutating func stoppingAsksForTimeAndIsNeverReadyAgain() {
        #expect(report.stops(within: .seconds(15)) == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=15000000"])
        #expect(lines("the hub is draining", at: 60, beats: [1]) == ["STATUS=the hub is draining", "WATCHDOG=1"])
        #expect(report.reloads(at: 1) == [])
    }
}
