import Foundation
import Testing
import Wire

@Suite struct Base64Tests {
    @Test func isAsFoundationHasIt() {
        var bytes: [UInt8] = []
        for n in 0..<300 {
            var out: [UInt8] = []
            Base64.append(bytes, to: &out)
            #expect(String(decoding: out, as: UTF8.self) == Data(bytes).base64EncodedString())
            #expect(Base64.decode(out) == bytes)
            bytes.append(UInt8(truncatingIfNeeded: n &* 167 &+ 13))
        }
    }

    @Test(arguments: [
        "A", "AA", "AAA", "A===", "====", "AB==", "AAB=", "AA=A", "AA-_", "AAAA\n", "AAAA=", "=AAA", "AA==AAAA",
    ])
    func refuses(_ text: String) {
        #expect(Base64.decode(Array(text.utf8)) == nil)
    }
}
