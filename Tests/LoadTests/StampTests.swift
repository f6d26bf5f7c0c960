import Testing

@testable import roost_load

@Suite struct StampTests {
    private let code = StampCode(run: 0xBEEF)

    private func read(_ text: String) -> Stamp? {
        Array(text.utf8).withUnsafeBytes { bytes in
            code.needle.end(in: bytes).flatMap { code.read(bytes, at: $0) }
        }
    }

    @Test func itIsReadAsItWasWritten() {
        let stamp = Stamp(
            kind: .broadcast, stream: 0xABCDE, number: 123_456, due: 98_765_432_109_876, sent: 98_765_432_110_001)
        let text = String(decoding: code.bytes(of: stamp), as: UTF8.self)
        #expect(text.utf8.count == StampCode.count)
        #expect(read(#"[null,null,"t","broadcast",{"payload":{"t":"\#(text)xxx"}}]"#) == stamp)
    }

    @Test func rowsHaveNoTimes() {
        let stamp = Stamp(kind: .row, stream: 7, number: 9)
        let text = code.timelessText(of: stamp)
        #expect(text.utf8.count == StampCode.timelessCount)
        #expect(text.utf8.count <= 40)
        #expect(read(text) == stamp)
        #expect(read(text + "0123456789abcdef0123456789abcdef") == stamp)
    }

    @Test func othersAreNotSeen() {
        let other = StampCode(run: 0xBEEE).bytes(of: Stamp(kind: .broadcast, stream: 1, number: 1))
        #expect(read(String(decoding: other, as: UTF8.self)) == nil)
        #expect(read("RL=0000beef") == nil)
        #expect(read("RL=0000beefb00000100000") == nil)
        #expect(read("RL=0000beefz00000100000001") == nil)
        #expect(read("RL=0000beefb0000010000000G") == nil)
    }
}
