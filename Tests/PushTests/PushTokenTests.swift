import Hub
import Testing

struct PushTokenTests {
    @Test func takesHexadecimalOfAnyLength() {
        #expect(PushToken(String(repeating: "aB", count: 32))?.hex == String(repeating: "ab", count: 32))
        #expect(PushToken(String(repeating: "0f", count: 80)) != nil)
        for bad in ["", "abc", String(repeating: "zz", count: 32), String(repeating: "a", count: 33)] {
            #expect(PushToken(bad) == nil)
        }
    }

    @Test func isNotPrintedWhole() {
        let token = PushToken(String(repeating: "0123456789abcdef", count: 4))
        #expect(token.map { "\($0)" } == "01234567…")
    }
}
