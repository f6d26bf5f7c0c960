import Gateway
import Testing

@Suite struct RecoveryPaceTests {
    /// Sends changes of 1,000 bytes while there is room, and a ping where one is wanted; how many bytes.
    private func fill(_ pace: inout RecoveryPace, at now: Int64) -> Int {
        var sent = 0
        while pace.hasRoom {
            pace.sends(1000)
            sent += 1000
            if pace.wantsProof { pace.asks(at: now) }
        }
        return sent
    }

    @Test func littleIsUnreadUntilAPingIsAnswered() {
        var pace = RecoveryPace()
        #expect(fill(&pace, at: 0) <= 132_000)
        #expect(!pace.hasRoom && pace.askedAt == 0)
        pace.isAnswered(at: 500)
        #expect(pace.hasRoom && pace.wantsProof, "the next ping follows what was sent behind the first")
    }

    /// At 48 KB/s, with kernels between that take all of it, an answer never takes more than some seconds.
    @Test func aSlowReaderIsAnsweredInTime() {
        var pace = RecoveryPace()
        var (now, longest) = (0 as Int64, 0 as Int64)
        for _ in 0..<20 {
            let asked = pace.askedAt ?? now
            let unread = fill(&pace, at: now)
            now += Int64(unread) / 48
            longest = max(longest, now - asked)
            pace.isAnswered(at: now)
            if pace.wantsProof { pace.asks(at: now) }
        }
        #expect(longest < 6000)
        #expect(pace.step == 16_384)
    }

    @Test func aQuickReaderGetsMoreAtATime() {
        var pace = RecoveryPace()
        for now in 0..<10 as Range<Int64> {
            _ = fill(&pace, at: now)
            pace.isAnswered(at: now)
        }
        #expect(pace.step == 262_144)
    }

    @Test func whoAnswersNoPingsIsServedAllTheSame() {
        var pace = RecoveryPace()
        _ = fill(&pace, at: 0)
        #expect(!pace.givesUp(at: 9999) && !pace.hasRoom)
        #expect(pace.givesUp(at: 10_000) && pace.hasRoom)
    }
}
