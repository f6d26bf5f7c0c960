import Testing
import Wire

@Suite struct UTF8ScannerTests {
    private func isValid(_ bytes: [UInt8]) -> Bool { UTF8Scanner.isValid(bytes.span) }

    @Test func acceptsEveryScalar() {
        for value in stride(from: UInt32(0), through: 0x10FFFF, by: 1) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            if !isValid(Array(UTF8.encode(scalar)!)) { Issue.record("U+\(String(value, radix: 16))") }
        }
    }

    @Test func knowsTheBeginningOfACharacter() {
        for text in ["a", "é", "€", "🐦"] {
            let bytes = Array("x\(text)".utf8)
            #expect(UTF8Scanner.unfinishedCount(in: bytes) == 0)
            for count in 2..<max(bytes.count, 2) {
                #expect(UTF8Scanner.unfinishedCount(in: Array(bytes[..<count])) == count - 1, "\(text) \(count)")
            }
        }
        #expect(
            UTF8Scanner.unfinishedCount(in: []) == 0 && UTF8Scanner.unfinishedCount(in: [0x80, 0x80, 0x80, 0x80]) == 0)
    }

    @Test(
        arguments: [
            [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xC2, 0xC0], [0xE0, 0x9F, 0xBF],
            [0xE0, 0xA0],
            [0xE1, 0x80], [0xE1, 0x80, 0x41], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF0, 0x90, 0x80],
            [0xF1, 0x80, 0x80, 0x41], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF],
            [0x61, 0xC3, 0xA9, 0xC3],
        ] as [[UInt8]])
    func refuses(_ bytes: [UInt8]) {
        #expect(!isValid(bytes))
        #expect(throws: JSON.SyntaxError.self) { try JSON(parsing: [0x22] + bytes + [0x22]) }
    }

    /// All strings of up to two bytes, and three and four bytes around every border, against the standard library.
    @Test func agreesWithTheStandardLibrary() {
        let borders: [UInt8] = [
            0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF3, 0xF4, 0xF5,
        ]
        func check(_ bytes: [UInt8]) {
            if isValid(bytes) != (String(validating: bytes, as: UTF8.self) != nil) { Issue.record("\(bytes)") }
        }
        check([])
        for a in UInt8.min...UInt8.max {
            check([a])
            for b in UInt8.min...UInt8.max { check([a, b]) }
        }
        for a in borders {
            for b in borders {
                for c in borders {
                    check([a, b, c])
                    for d in borders { check([a, b, c, d]) }
                }
            }
        }
    }
}
