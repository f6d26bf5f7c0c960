import RoostClient
import Testing

@Suite struct ConnectionMachineTests {
    @Test func aTokenIsAskedForAtEachConnection() {
        let client = ClientHarness()
        client.goOnline(token: "one")
        client.socketEnds()
        client.goOnline(token: "two")
        #expect(client.asked.count == 2)
        #expect(client.opened.map(\.token) == ["one", "two"])
    }

    @Test func aCallbackThatFailsIsAskedAgain() {
        let client = ClientHarness()
        client.connect()
        client.giveToken(nil)
        #expect(client.opened.isEmpty)
        #expect(client.socketEvents.contains(.lost(reason: "The app has no token: no")))
        client.pass(.seconds(1))
        #expect(client.asked.count == 2)
    }

    @Test func aCallbackThatNeverEndsDoesNotHoldUpTheClient() {
        let client = ClientHarness()
        client.connect()
        client.pass(.seconds(31))
        #expect(client.asked.count == 2)
        // Its answer, when it comes at last, is for nobody.
        client.connection { $0.tokenArrived(1, "late", $1) }
        #expect(client.opened.isEmpty)
    }

    @Test func aHubThatDoesNotAnswerIsGivenUp() {
        let client = ClientHarness()
        client.connect()
        client.giveToken()
        client.pass(.seconds(10))
        #expect(client.closed == [1])
        #expect(client.socketEvents.contains(.lost(reason: "The hub does not answer.")))
    }

    @Test func waitsGrowAndStartOverAfterAStableConnection() {
        let client = ClientHarness()
        client.connect()
        for _ in 0..<6 {
            client.giveToken()
            client.socketEnds(.unreachable("no"))
            if case .waiting(let until) = client.machine.connection.phase { client.pass(until - client.now) }
        }
        client.giveToken()
        client.socketOpens()
        // Not stable yet: the next wait is as long as the last.
        client.pass(.seconds(9))
        client.socketEnds()
        client.goOnline()
        client.pass(.seconds(10))
        client.socketEnds()
        let waits = client.socketEvents.compactMap { if case .waiting(let wait) = $0 { wait } else { nil } }
        #expect(waits == [0.5, 1, 2, 4, 7.5, 7.5, 7.5, 0.5].map { Duration.seconds($0) })
    }

    @Test func theNetworkIsBack() {
        let client = ClientHarness()
        client.random = 0.9
        client.goOnline()
        client.socketEnds()
        client.connection { $0.networkIsBack($1) }
        #expect(client.asked.count == 2)
        client.giveToken()
        client.socketOpens()
        // A socket that only looks alive is found out: nothing comes back.
        client.connection { $0.networkIsBack($1) }
        #expect(client.sent.last?.event == "heartbeat")
        client.pass(.seconds(4))
        #expect(client.closed == [2])
        #expect(client.socketEvents.contains(.lost(reason: "The hub is silent.")))
    }

    @Test func anAttemptOfBeforeTheNetworkCameBackIsMadeAnew() {
        let client = ClientHarness()
        client.connect()
        client.giveToken("one")
        client.connection { $0.networkIsBack($1) }
        #expect(client.closed == [1])
        client.connection { $0.socketEnded(1, .cancelled, $1) }
        client.giveToken("two")
        client.socketOpens()
        #expect(client.opened.map(\.id) == [1, 2])
        #expect(client.machine.connection.isOpen)
    }

    @Test func heartbeats() {
        let client = ClientHarness()
        client.goOnline()
        for _ in 0..<4 {
            client.pass(.seconds(25))
            client.hear("[null,\"9\",\"phoenix\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]")
        }
        #expect(client.sent.count { $0.event == "heartbeat" } == 4)
        #expect(client.closed.isEmpty)
        client.pass(.seconds(25))
        client.pass(.milliseconds(9999))
        #expect(client.closed.isEmpty)
        client.pass(.milliseconds(1))
        #expect(client.closed == [1])
    }

    @Test(arguments: [1000, 1001, 1006, 1009, 1012, 1013, 3000, 3999])
    func codesBelow4000AreComeBackFrom(code: Int) {
        let client = ClientHarness()
        client.goOnline()
        client.socketEnds(.closed(code: code))
        client.goOnline()
        #expect(client.opened.count == 2)
    }

    @Test func from4000UpIsFinal() {
        let client = ClientHarness()
        client.goOnline()
        client.socketEnds(.closed(code: 4000))
        client.pass(.seconds(600))
        #expect(client.opened.count == 1)
        #expect(client.states.last == .ended(reason: "The hub closed the connection with code 4000."))
        client.goOnline()
        #expect(client.opened.count == 2)
        #expect(client.states.suffix(2) == [.connecting, .connected])
    }

    @Test func disconnectingIsTheEndOfIt() {
        let client = ClientHarness()
        client.goOnline()
        client.input { $0.disconnectAll($1) }
        #expect(client.closed == [1])
        client.pass(.seconds(600))
        #expect(client.states.last == .idle)
        #expect(client.machine.nextDeadline == nil)
    }

    @Test func whatASocketOfBeforeSaysIsNotHeard() {
        let client = ClientHarness()
        client.goOnline()
        client.socketEnds()
        client.goOnline()
        client.connection { $0.socketEnded(1, .closed(code: 1006), $1) }
        #expect(client.machine.connection.isOpen)
    }
}

@Suite struct BackoffTests {
    @Test func ceilingsDoubleUpToTheCap() {
        var backoff = Backoff(Backoff.Policy())
        let ceilings = (0..<40).map { _ in
            defer { _ = backoff.nextPause(0.5) }
            return backoff.ceiling
        }
        #expect(ceilings.prefix(6) == [1, 2, 4, 8, 15, 15].map { Duration.seconds($0) }[...])
        #expect(ceilings.last == .seconds(15))
    }

    @Test func jitterIsFull() {
        var low = Backoff(Backoff.Policy())
        var high = low
        let outcome35 = low.nextPause(0)
        #expect(outcome35 == .zero)
        let outcome36 = high.nextPause(0.75) == .milliseconds(750)
        #expect(outcome36)
        let outcome37 = high.nextPause(0.75) == .milliseconds(1500)
        #expect(outcome37)
    }

    @Test func onlyWhatWasStableStartsOver() {
        var backoff = Backoff(Backoff.Policy())
        for _ in 0..<3 { _ = backoff.nextPause(0.5) }
        backoff.connectionEnded(after: .seconds(9))
        #expect(backoff.ceiling == .seconds(8))
        backoff.connectionEnded(after: .seconds(10))
        #expect(backoff.ceiling == .seconds(1))
    }
}
