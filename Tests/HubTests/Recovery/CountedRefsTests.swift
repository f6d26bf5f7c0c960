import Hub
import Testing
import Wire

/// A client's refs tell that it was here before, whatever it sends without one.
@Suite struct CountedRefsTests {
    private let returning = ReturningTests()

    /// The Python client's: a heartbeat without a ref is the first that it sends on each socket.
    @Test func whoSendsAHeartbeatBeforeItsJoinIsNotSentTheSameAgain() throws {
        let stage = try returning.stage()
        for turn in 1...4 {
            try stage.disconnect(Slot(turn))
            #expect(try join(stage, Slot(turn) + 1, ref: turn + 1) == .mark(turn * 10 - (turn == 1 ? 7 : 0)))
            try returning.acknowledge(stage, Slot(turn) + 1, mark: turn * 10 + 10)
        }
    }

    private func join(_ stage: Stage, _ slot: Slot, ref: Int) throws -> RecoveryPoint? {
        stage.connect(slot, subject: "ann")
        try stage.say(#"[null,null,"phoenix","heartbeat",{}]"#, from: slot)
        try stage.join("realtime:a", slot, ref: "\(ref)", ReturningTests.config)
        var point = ReturningTests.point(stage)
        if let group = stage.subscribed.first {
            _ = try stage.watch { $0.changeSubscription(group, is: .live) }
            point = point ?? ReturningTests.point(stage)
        }
        return point
    }
}
