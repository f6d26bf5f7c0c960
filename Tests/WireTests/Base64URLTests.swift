import Foundation
import TestSupport
import Testing
import Wire

@Suite struct Base64URLTests {
    /// RFC 4648, section 10, without the padding.
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
        ("foobar", "Zm9vYmFy"),
    ])
    func vectors(_ text: String, _ encoded: String) {
        #expect(Base64URL.encode(text.utf8) == encoded)
        #expect(Base64URL.decode(Array(encoded.utf8)) == Array(text.utf8))
    }

    @Test func theAlphabetIsSafeInURLs() {
        #expect(Base64URL.encode([0xFB, 0xFF, 0xBF]) == "-_-_")
        #expect(Base64URL.decode(Array("-_-_".utf8)) == [0xFB, 0xFF, 0xBF])
    }

    @Test(arguments: [
        "Z", "Zm9vY", "Zg==", "Zg=", "=", "Zm8=", "+/+/", "Zm9v\n", " Zm9v", "Zm 9v", "Zm9vé", "Zm9\u{0}", "Zm9.",
        "Zm9!",
    ])
    func refuses(_ text: String) { #expect(Base64URL.decode(Array(text.utf8)) == nil) }

    /// One signature must have one spelling: bits behind the last byte are zero.
    @Test func refusesTailsThatAreNotCanonical() {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for (index, last) in alphabet.enumerated() {
            #expect((Base64URL.decode([alphabet[25], last]) != nil) == (index % 16 == 0))
            #expect((Base64URL.decode([alphabet[25], alphabet[38], last]) != nil) == (index % 4 == 0))
        }
    }

    @Test func agreesWithFoundation() {
        var random = SeededGenerator(seed: 4648)
        for count in 0..<300 {
            let bytes = (0..<count).map { _ in UInt8(random.below(256)) }
            let theirs = Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
            #expect(Base64URL.encode(bytes) == theirs)
            #expect(Base64URL.decode(Array(theirs.utf8)[...]) == bytes)
        }
    }
}
