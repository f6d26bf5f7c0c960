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

@Suite struct HexadecimalTests {
    @Test(arguments: [0, 1, 15, 16, 0xFFFF_FFFF_FFFF] as [UInt64])
    func numbers(_ value: UInt64) {
        let text = Hexadecimal.text(value, width: 14)
        #expect(text.utf8.count == 14)
        Array(text.utf8).withUnsafeBytes { #expect(Hexadecimal.parseNumber($0, 0, width: 14) == value) }
    }

    @Test(arguments: ["0x", "AB", "g0", "/0", ":0", "`0"])
    func whatIsNoNumber(_ text: String) {
        Array(text.utf8).withUnsafeBytes { #expect(Hexadecimal.parseNumber($0, 0, width: 2) == nil) }
    }

    @Test func everyDigitInEitherCase() {
        for byte in UInt8.min ... .max {
            #expect(Hexadecimal.value(byte).map(Int.init) == Int(String(UnicodeScalar(byte)), radix: 16))
        }
        #expect(Hexadecimal.text([0, 0x0A, 0xF0, 0xFF]) == "000af0ff")
    }

    @Test func bytea() {
        #expect(Hexadecimal.parseBytea(Array(#"\x00ff4a"#.utf8)) == [0, 0xFF, 0x4A])
        #expect(Hexadecimal.parseBytea(Array(#"\x"#.utf8)) == [])
        for text in ["", "\\", "00", #"\x0"#, #"\x0g"#, #"\000"#] {
            #expect(Hexadecimal.parseBytea(Array(text.utf8)) == nil)
        }
    }
}

@Suite struct UUIDTextTests {
    @Test func agreesWithFoundation() {
        var random = SeededGenerator(seed: 9562)
        for _ in 0..<200 {
            let value = UInt128.random(in: .min ... .max, using: &random)
            let text = UUIDText.formatUUID(value)
            #expect(UUID(uuidString: text)?.uuidString.lowercased() == text)
            #expect(UUIDText.parse(Array(text.utf8)) == value)
        }
    }

    /// RFC 9562, appendix A.3, and section 4.1: the variant is the two bits 10.
    @Test func versionAndVariant() {
        #expect(UUIDText.formatUUID(.max, version: 4) == "ffffffff-ffff-4fff-bfff-ffffffffffff")
        #expect(UUIDText.formatUUID(0, version: 8) == "00000000-0000-8000-8000-000000000000")
    }
}
