import Testing
import Wire

@Suite struct FrameTests {
    private func frame(_ opcode: Frame.Opcode, _ count: Int) -> [UInt8] {
        Frame(opcode, count: count) { out in out += repeatElement(UInt8(ascii: "x"), count: count) }.bytes
    }

    @Test(
        arguments: [
            (0, [0x81, 0]), (1, [0x81, 1]), (125, [0x81, 125]), (126, [0x81, 126, 0, 126]), (255, [0x81, 126, 0, 255]),
            (256, [0x81, 126, 1, 0]), (65_535, [0x81, 126, 255, 255]), (65_536, [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
            (16_909_060, [0x81, 127, 0, 0, 0, 0, 1, 2, 3, 4]),
        ] as [(Int, [UInt8])])
    func headers(_ count: Int, _ header: [UInt8]) throws {
        let bytes = frame(.text, count)
        #expect(Array(bytes.prefix(header.count)) == header)
        #expect(bytes.count == header.count + count)
        #expect(try ReceivedFrame(bytes).payload.count == count)
    }

    @Test func opcodes() {
        #expect(frame(.text, 1)[0] == 0x81)
        #expect(frame(.binary, 1)[0] == 0x82)
        #expect(Frame.ping.bytes == [0x89, 5] + Array("roost".utf8))
    }
}

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
