import RoostClient
import Testing

/// What a UI is shown of losses.
@Suite struct ConnectionGraceTests {
    private func online() -> ClientHarness {
        let client = ClientHarness()
        client.goOnline()
        // The wait before the next attempt is a whole minute in these tests: the loss lasts as long as they say.
        client.random = 0.999
        return client
    }

    private let lost = ConnectionState.disconnected(reason: "The connection broke.")

    @Test func theFirstConnectionIsShown() {
        let client = online()
        #expect(client.states == [.connecting, .connected])
    }

    @Test(arguments: [(AppState.active, 2), (.inactive, 12), (.background, 20)])
    func aLossIsShownWhenItIsLongerThanTheWindow(state: AppState, seconds: Int) {
        let client = online()
        client.input { $0.changeAppState(to: state, $1) }
        client.socketEnds()
        // Attempts are made meanwhile and come to nothing.
        while client.now < .seconds(seconds) - .milliseconds(100) {
            client.pass(.milliseconds(100))
            client.giveToken()
            client.socketEnds(.unreachable("no"))
        }
        #expect(client.states == [.connecting, .connected])
        client.pass(.milliseconds(200))
        #expect(client.states.count == 3)
        guard case .disconnected = client.states.last else {
            Issue.record("\(client.states)")
            return
        }
    }

    @Test func aShorterLossLeavesNoTrace() {
        let client = online()
        for _ in 0..<5 {
            client.socketEnds()
            client.pass(.milliseconds(1000))
            client.giveToken()
            client.socketOpens()
            client.pass(.seconds(20))
        }
        #expect(client.states == [.connecting, .connected])
    }

    @Test func theTimeCountsFromTheFirstOfManyLosses() {
        let client = online()
        client.socketEnds()
        client.random = 0.1
        for _ in 0..<30 {
            client.pass(.milliseconds(100))
            client.giveToken()
            client.socketEnds(.unreachable("still nothing"))
        }
        #expect(client.states == [.connecting, .connected, .disconnected(reason: "still nothing")])
    }

    @Test func aReturnAfterTheWindowIsShown() {
        let client = online()
        client.socketEnds()
        client.pass(.seconds(3))
        client.giveToken()
        client.socketOpens()
        #expect(client.states == [.connecting, .connected, lost, .connected])
    }

    @Test func whoComesToTheFrontIsNotShownALossOfBefore() {
        let client = online()
        client.input { $0.changeAppState(to: .background, $1) }
        client.socketEnds()
        client.pass(.seconds(15))
        client.input { $0.changeAppState(to: .active, $1) }
        client.pass(.milliseconds(1900))
        #expect(client.states == [.connecting, .connected])
        client.pass(.milliseconds(200))
        #expect(client.states.count == 3)
    }

    @Test func comingToTheFrontTriesAtOnce() {
        let client = online()
        client.input { $0.changeAppState(to: .background, $1) }
        client.socketEnds()
        let attempts = client.asked.count
        client.input { $0.changeAppState(to: .active, $1) }
        #expect(client.asked.count == attempts + 1)
    }

    @Test func aFirstConnectionThatFailsIsShownAfterTheWindow() {
        let client = ClientHarness()
        client.random = 0.999
        client.connect()
        client.giveToken()
        client.socketEnds(.unreachable("Nobody is there."))
        client.pass(.milliseconds(1900))
        #expect(client.states == [.connecting])
        client.pass(.milliseconds(200))
        #expect(client.states == [.connecting, .disconnected(reason: "Nobody is there.")])
    }
}
