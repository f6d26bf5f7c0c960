import RoostClient
import Testing

/// What a UI is shown of losses.
@Suite struct GraceTests {
    private func online() -> Desk {
        let desk = Desk()
        desk.goOnline()
        // The wait before the next attempt is a whole minute in these tests: the loss lasts as long as they say.
        desk.random = 0.999
        return desk
    }

    private let lost = ConnectionState.disconnected(reason: "The connection broke.")

    @Test func theFirstConnectionIsShown() {
        let desk = online()
        #expect(desk.states == [.connecting, .connected])
    }

    @Test(arguments: [(AppState.active, 2), (.inactive, 12), (.background, 20)])
    func aLossIsShownWhenItIsLongerThanTheWindow(state: AppState, seconds: Int) {
        let desk = online()
        desk.input { $0.change(to: state, $1) }
        desk.socketEnds()
        // Attempts are made meanwhile and come to nothing.
        while desk.now < .seconds(seconds) - .milliseconds(100) {
            desk.pass(.milliseconds(100))
            desk.giveToken()
            desk.socketEnds(.unreachable("no"))
        }
        #expect(desk.states == [.connecting, .connected])
        desk.pass(.milliseconds(200))
        #expect(desk.states.count == 3)
        guard case .disconnected = desk.states.last else {
            Issue.record("\(desk.states)")
            return
        }
    }

    @Test func aShorterLossLeavesNoTrace() {
        let desk = online()
        for _ in 0..<5 {
            desk.socketEnds()
            desk.pass(.milliseconds(1000))
            desk.giveToken()
            desk.socketOpens()
            desk.pass(.seconds(20))
        }
        #expect(desk.states == [.connecting, .connected])
    }

    @Test func theTimeCountsFromTheFirstOfManyLosses() {
        let desk = online()
        desk.socketEnds()
        desk.random = 0.1
        for _ in 0..<30 {
            desk.pass(.milliseconds(100))
            desk.giveToken()
            desk.socketEnds(.unreachable("still nothing"))
        }
        #expect(desk.states == [.connecting, .connected, .disconnected(reason: "still nothing")])
    }

    @Test func aReturnAfterTheWindowIsShown() {
        let desk = online()
        desk.socketEnds()
        desk.pass(.seconds(3))
        desk.giveToken()
        desk.socketOpens()
        #expect(desk.states == [.connecting, .connected, lost, .connected])
    }

    @Test func whoComesToTheFrontIsNotShownALossOfBefore() {
        let desk = online()
        desk.input { $0.change(to: .background, $1) }
        desk.socketEnds()
        desk.pass(.seconds(15))
        desk.input { $0.change(to: .active, $1) }
        desk.pass(.milliseconds(1900))
        #expect(desk.states == [.connecting, .connected])
        desk.pass(.milliseconds(200))
        #expect(desk.states.count == 3)
    }

    @Test func comingToTheFrontTriesAtOnce() {
        let desk = online()
        desk.input { $0.change(to: .background, $1) }
        desk.socketEnds()
        let attempts = desk.asked.count
        desk.input { $0.change(to: .active, $1) }
        #expect(desk.asked.count == attempts + 1)
    }

    @Test func aFirstConnectionThatFailsIsShownAfterTheWindow() {
        let desk = Desk()
        desk.random = 0.999
        desk.connect()
        desk.giveToken()
        desk.socketEnds(.unreachable("Nobody is there."))
        desk.pass(.milliseconds(1900))
        #expect(desk.states == [.connecting])
        desk.pass(.milliseconds(200))
        #expect(desk.states == [.connecting, .disconnected(reason: "Nobody is there.")])
    }
}
