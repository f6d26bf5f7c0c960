import Gateway
import Testing

@Suite struct RecoveryPaceTests {
    /// Sends changes of 1,000 bytes while there is room, and a ping where one is wanted; how many bytes.
    @discardableResult private func fill(_ pace: inout RecoveryPace, at now: Int64) -> Int {
        var sent = 0
        while pace.hasRoom {
            pace.sends(1000)
            sent += 1000
            if pace.wantsPing { pace.pings(at: now) }
        }
        return sent
    }

    @Test func littleIsUnreadUntilAPingIsAnswered() {
        var pace = RecoveryPace()
        #expect(fill(&pace, at: 0) <= 132_000)
        #expect(!pace.hasRoom && pace.pingedAt == 0)
        pace.isAnswered(at: 500)
        #expect(pace.hasRoom && pace.wantsPing, "the next ping follows what was sent behind the first")
    }

    /// At 48 KB/s, with kernels between that take all of it, an answer never takes more than some seconds.
    @Test func aSlowReaderIsAnsweredInTime() throws {
        var pace = RecoveryPace()
        // Bytes that were sent, and how many of them lie before the ping.
        var (sent, before) = (0, 0)
        var (now, longest) = (0 as Int64, 0 as Int64)
        for _ in 0..<40 {
            while pace.hasRoom {
                pace.sends(1000)
                sent += 1000
                guard pace.wantsPing else { continue }
                pace.pings(at: now)
                before = sent
            }
            let asked = try #require(pace.pingedAt)
            // It has read so far when it answers.
            now = max(now, Int64(before) / 48)
            longest = max(longest, now - asked)
            pace.isAnswered(at: now)
            guard pace.wantsPing else { continue }
            pace.pings(at: now)
            before = sent
        }
        #expect(longest < 4000)
        #expect(pace.step <= 32_768)
    }

    @Test func aQuickReaderGetsMoreAtATime() {
        var pace = RecoveryPace()
        for now in 0..<10 as Range<Int64> {
            fill(&pace, at: now)
            pace.isAnswered(at: now)
        }
        #expect(pace.step == 262_144)
    }

    @Test func whoAnswersNoPingsIsServedAllTheSame() {
        var pace = RecoveryPace()
        fill(&pace, at: 0)
        #expect(!pace.givesUp(at: 9999) && !pace.hasRoom)
        #expect(pace.givesUp(at: 10_000) && pace.hasRoom)
    }
}
