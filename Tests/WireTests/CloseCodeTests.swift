import Testing
import Wire

@Suite struct CloseCodeTests {
    @Test func everyCodeLetsEveryClientComeBack() {
        #expect(!CloseCode.allCases.isEmpty)
        for code in CloseCode.allCases {
            #expect((1000..<4000).contains(code.rawValue), "supabase-swift never reconnects after \(code)")
            #expect(![1004, 1005, 1006, 1015].contains(code.rawValue), "RFC 6455 forbids \(code) in a close frame")
        }
    }

    /// A label of a metric for each number would be a client's to fill.
    @Test func whatOthersSendIsNamedOnlyIfAStandardNamesIt() {
        #expect(CloseCode.allCases.allSatisfy { PeerClose.isRegistered($0.rawValue) })
        #expect([1005, 1006, 1015].allSatisfy { PeerClose.isRegistered($0) })
        #expect((0...UInt16.max).count { PeerClose.isRegistered($0) } == 15)
        #expect(!PeerClose.isRegistered(3000) && !PeerClose.isRegistered(4999))
    }

    @Test func numbersAreTheRegistered() {
        #expect(CloseCode.normal.rawValue == 1000)
        #expect(CloseCode.goingAway.rawValue == 1001)
        #expect(CloseCode.invalidData.rawValue == 1007)
        #expect(CloseCode.messageTooBig.rawValue == 1009)
        #expect(CloseCode.serviceRestart.rawValue == 1012)
    }
}
