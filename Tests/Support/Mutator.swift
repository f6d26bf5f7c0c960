/// Damages bytes the way networks, bugs and attackers do.
package struct Mutator {
    package var random: SeededGenerator
    /// Pieces that the parser under test may trip over.
    private let tokens: [[UInt8]]

    package static let frameTokens: [[UInt8]] =
        [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\udc00", "\\u0000", "null", "true", "1e9",
            "-", "-0",
            "0.5", "01", "\"ref\":", "\"a\":", " ", "\n", "realtime:", "99999999999999999999",
        ].map { Array($0.utf8) } + [
            [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x9F, 0x98, 0x80], [0xE2, 0x82], [0], [0x7F],
        ]

    package init(random: SeededGenerator, tokens: [[UInt8]] = Mutator.frameTokens) {
        self.random = random
        self.tokens = tokens
    }

    package mutating func mutate(_ seed: [UInt8], with corpus: [[UInt8]]) -> [UInt8] {
        var bytes = seed
        for _ in 0...random.below(3) { change(&bytes, corpus) }
        return bytes
    }

    private mutating func change(_ bytes: inout [UInt8], _ corpus: [[UInt8]]) {
        let at = random.below(bytes.count + 1)
        let end = min(bytes.count, at + 1 + random.below(8))
        switch random.below(8) {
        case 0 where at < bytes.count: bytes[at] ^= 1 << UInt8(random.below(8))
        case 1 where at < bytes.count: bytes[at] = UInt8(random.below(256))
        case 2: bytes.removeSubrange(at..<end)
        case 3: bytes.insert(contentsOf: bytes[at..<end], at: at)
        case 4: bytes.removeSubrange(at...)
        case 5:
            let other = random.pick(corpus)
            let from = random.below(other.count + 1)
            bytes.replaceSubrange(at..., with: other[from...])
        case 6: bytes.replaceSubrange(at..<end, with: random.pick(tokens))
        default: bytes.insert(contentsOf: random.pick(tokens), at: at)
        }
    }

    /// Bytes that were never a frame.
    package mutating func noise() -> [UInt8] {
        (0..<random.below(48)).map { _ in UInt8(random.below(256)) }
    }
}
