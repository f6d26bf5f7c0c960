import HTTP
import TestSupport
import Testing

/// Damaged heads and bodies: each is read, refused or waited for, in pieces as in one, and nothing traps.
@Suite struct HTTPFuzzTests {
    private static let runs = 40_000

    private static let tokens: [[UInt8]] =
        [
            "\r\n", "\n", "\r", ":", " ", "\t", "\r\n\r\n", "\r\n ", "Host: x\r\n", "Content-Length: 5\r\n",
            "Content-Length:",
            "Transfer-Encoding: chunked\r\n", "Transfer-Encoding", "chunked", ",", ";", "%", "%00", "%4", "HTTP/1.0",
            "HTTP/1.1",
            "http://x", "?", "&", "=", "#", "*", "0", "5", "f", "5\r\n", "0\r\n\r\n", "0\r\n", "ffffffffffffffff",
            "Connection: close\r\n",
        ].map { Array($0.utf8) } + [[0], [0xFF], [0xC0, 0x80], [0xF0, 0x9F, 0x98, 0x80], [0x0B]]

    private static let heads = HTTPHeadTests.accepted.map { Array($0.utf8) }
    private static let bodies = HTTPBodyDecoderTests.whole.map { Array($0.body.utf8) }
    private static let badBodies = HTTPBodyDecoderTests.refused.keys.sorted().map { Array($0.utf8) }

    @Test(arguments: 0..<2) func heads(_ part: Int) {
        var mutator = Mutator(random: SeededGenerator(seed: 0xBAD_4EAD + UInt64(part)), tokens: Self.tokens)
        var (accepted, refused) = (0, 0)
        for _ in 0..<(Self.runs / 2) {
            let bytes = mutator.mutate(mutator.random.pick(Self.heads), with: Self.heads)
            let whole = readHead(bytes)
            let cut = mutator.random.below(bytes.count + 1)
            if readHead(bytes, arrivals: [cut, bytes.count]) != whole { Issue.record("cut at \(cut): \(bytes)") }
            switch whole {
            case .incomplete: break
            case .refused: refused += 1
            case .complete(let head, let length):
                accepted += 1
                if !isSound(head, bytes[..<length]) { Issue.record("\(head): \(bytes)") }
            }
        }
        // Neither a fuzzer whose heads are all refused nor a parser that takes everything is worth running.
        #expect(accepted > Self.runs / 20 && refused > Self.runs / 20)
    }

    /// Written again, it reads the same; and what it is made of is what may stand there.
    private func isSound(_ head: ReadHead, _ bytes: ArraySlice<UInt8>) -> Bool {
        let fields = head.fields.allSatisfy { field in
            !field[0].isEmpty && field[0].utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
                && field[0] == field[0].lowercased() && field[1].utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 }
        }
        return readHead(head.canonical).head == head && fields && head.path.hasPrefix("/")
            && !head.path.utf8.contains(0)
            && bytes.suffix(4) == [13, 10, 13, 10]
            // Every line is a field but the first and the last two, which are empty; one more may stand before.
            && (bytes.count { $0 == 10 } - head.fields.count - 2 <= 1)
    }

    @Test(arguments: 0..<2) func bodies(_ part: Int) {
        var mutator = Mutator(random: SeededGenerator(seed: 0xBAD_B0D1 + UInt64(part)), tokens: Self.tokens)
        var (complete, refused) = (0, 0)
        for _ in 0..<(Self.runs / 2) {
            let bytes = mutator.mutate(mutator.random.pick(Self.bodies), with: Self.badBodies)
            let whole = readBody(bytes, .chunked)
            let cuts = (0..<3).map { _ in mutator.random.below(bytes.count + 1) }.sorted()
            if readBody(bytes, .chunked, cuts: cuts) != whole { Issue.record("cuts at \(cuts): \(bytes)") }
            let model = ChunkedModel(bytes)
            switch whole.progress {
            case .incomplete:
                if model != nil { Issue.record("incomplete: \(bytes)") }
            case .refused:
                refused += 1
                if model != nil { Issue.record("refused: \(bytes)") }
            case .complete:
                complete += 1
                if model?.content != whole.content || model?.consumed != whole.consumed { Issue.record("\(bytes)") }
            }
        }
        #expect(complete > Self.runs / 40 && refused > Self.runs / 20)
    }
}

/// A chunked body, read line by line without a thought for pieces; nil where it is damaged or has no end.
private struct ChunkedModel {
    private(set) var content: [UInt8] = []
    private(set) var consumed = 0

    init?(_ bytes: [UInt8]) {
        func line() -> String? {
            guard let feed = bytes[consumed...].firstIndex(of: 10), feed > consumed, bytes[feed - 1] == 13 else {
                return nil
            }
            defer { consumed = feed + 1 }
            return String(validating: bytes[consumed..<(feed - 1)], as: UTF8.self)
        }
        while true {
            guard let text = line(), !text.utf8.contains(where: { $0 > 126 || $0 < 32 && $0 != 9 }) else { return nil }
            let digits = text.prefix { $0 != ";" }
            guard (1...16).contains(digits.count), digits.allSatisfy({ $0.isHexDigit }),
                let size = Int(digits, radix: 16)
            else { return nil }
            guard size > 0 else { break }
            guard size <= bytes.count - consumed - 2 else { return nil }
            content += bytes[consumed..<(consumed + size)]
            consumed += size
            guard bytes[consumed] == 13, bytes[consumed + 1] == 10 else { return nil }
            consumed += 2
        }
        while true {
            guard let text = line() else { return nil }
            if text.isEmpty { return }
            // Fields have a parser and tests of their own.
            let head = Array("GET / HTTP/1.0\r\n\(text)\r\n\r\n".utf8)
            guard let field = readHead(head).head?.fields.first,
                !["host", "content-length", "transfer-encoding"].contains(field[0])
            else { return nil }
        }
    }
}
