import RoostClient
import Testing

@Suite struct ConnectionMachineTests {
    @Test func aTokenIsAskedForAtEachConnection() {
        let desk = Desk()
        desk.goOnline(token: "one")
        desk.socketEnds()
        desk.goOnline(token: "two")
        #expect(desk.asked.count == 2)
        #expect(desk.opened.map(\.token) == ["one", "two"])
    }

    @Test func aCallbackThatFailsIsAskedAgain() {
        let desk = Desk()
        desk.connect()
        desk.giveToken(nil)
        #expect(desk.opened.isEmpty)
        #expect(desk.socketEvents.contains(.lost(reason: "The app has no token: no")))
        desk.pass(.seconds(1))
        #expect(desk.asked.count == 2)
    }

    @Test func aCallbackThatNeverEndsDoesNotHoldUpTheClient() {
        let desk = Desk()
        desk.connect()
        desk.pass(.seconds(31))
        #expect(desk.asked.count == 2)
        // Its answer, when it comes at last, is for nobody.
        desk.connection { $0.token(1, "late", $1) }
        #expect(desk.opened.isEmpty)
    }

    @Test func aHubThatDoesNotAnswerIsGivenUp() {
        let desk = Desk()
        desk.connect()
        desk.giveToken()
        desk.pass(.seconds(10))
        #expect(desk.closed == [1])
        #expect(desk.socketEvents.contains(.lost(reason: "The hub does not answer.")))
    }

    @Test func waitsGrowAndStartOverAfterAStableConnection() {
        let desk = Desk()
        desk.connect()
        for _ in 0..<6 {
            desk.giveToken()
            desk.socketEnds(.unreachable("no"))
            if case .waiting(let until) = desk.machine.connection.phase { desk.pass(until - desk.now) }
        }
        desk.giveToken()
        desk.socketOpens()
        // Not stable yet: the next wait is as long as the last.
        desk.pass(.seconds(9))
        desk.socketEnds()
        desk.goOnline()
        desk.pass(.seconds(10))
        desk.socketEnds()
        let waits = desk.socketEvents.compactMap { if case .waiting(let wait) = $0 { wait } else { nil } }
        #expect(waits == [0.5, 1, 2, 4, 7.5, 7.5, 7.5, 0.5].map { Duration.seconds($0) })
    }

    @Test func theNetworkIsBack() {
        let desk = Desk()
        desk.random = 0.9
        desk.goOnline()
        desk.socketEnds()
        desk.connection { $0.networkIsBack($1) }
        #expect(desk.asked.count == 2)
        desk.giveToken()
        desk.socketOpens()
        // A socket that only looks alive is found out: nothing comes back.
        desk.connection { $0.networkIsBack($1) }
        #expect(desk.sent.last?.event == "heartbeat")
        desk.pass(.seconds(4))
        #expect(desk.closed == [2])
        #expect(desk.socketEvents.contains(.lost(reason: "The hub is silent.")))
    }

    @Test func anAttemptOfBeforeTheNetworkCameBackIsMadeAnew() {
        let desk = Desk()
        desk.connect()
        desk.giveToken("one")
        desk.connection { $0.networkIsBack($1) }
        #expect(desk.closed == [1])
        desk.connection { $0.ended(1, .cancelled, $1) }
        desk.giveToken("two")
        desk.socketOpens()
        #expect(desk.opened.map(\.id) == [1, 2])
        #expect(desk.machine.connection.isOpen)
    }

    @Test func heartbeats() {
        let desk = Desk()
        desk.goOnline()
        for _ in 0..<4 {
            desk.pass(.seconds(25))
            desk.hear("[null,\"9\",\"phoenix\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]")
        }
        #expect(desk.sent.count { $0.event == "heartbeat" } == 4)
        #expect(desk.closed.isEmpty)
        desk.pass(.seconds(25))
        desk.pass(.milliseconds(9999))
        #expect(desk.closed.isEmpty)
        desk.pass(.milliseconds(1))
        #expect(desk.closed == [1])
    }

    @Test(arguments: [1000, 1001, 1006, 1009, 1012, 1013, 3000, 3999])
    func codesBelow4000AreComeBackFrom(code: Int) {
        let desk = Desk()
        desk.goOnline()
        desk.socketEnds(.closed(code: code))
        desk.goOnline()
        #expect(desk.opened.count == 2)
    }

    @Test func from4000UpIsFinal() {
        let desk = Desk()
        desk.goOnline()
        desk.socketEnds(.closed(code: 4000))
        desk.pass(.seconds(600))
        #expect(desk.opened.count == 1)
        #expect(desk.states.last == .ended(reason: "The hub closed the connection with code 4000."))
        desk.goOnline()
        #expect(desk.opened.count == 2)
        #expect(desk.states.suffix(2) == [.connecting, .connected])
    }

    @Test func disconnectingIsTheEndOfIt() {
        let desk = Desk()
        desk.goOnline()
        desk.input { $0.disconnect($1) }
        #expect(desk.closed == [1])
        desk.pass(.seconds(600))
        #expect(desk.states.last == .idle)
        #expect(desk.machine.nextDeadline == nil)
    }

    @Test func whatASocketOfBeforeSaysIsNotHeard() {
        let desk = Desk()
        desk.goOnline()
        desk.socketEnds()
        desk.goOnline()
        desk.connection { $0.ended(1, .closed(code: 1006), $1) }
        #expect(desk.machine.connection.isOpen)
    }
}
