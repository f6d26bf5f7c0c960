/// Finds the end of the bytes that need no inspection in a JSON string or an HTTP field, eight at a time: strings are
/// most of what is scanned.
package enum PlainRun {
    /// Returns the first offset from `start` on with a quote, a backslash, a control character or a non-ASCII byte.
    static func endOfASCII(in bytes: Span<UInt8>, from start: Int) -> Int {
        findStop(in: bytes, from: start) { word in
            word & high | less(than: 0x20, word) | equal(to: UInt8(ascii: "\""), word)
                | equal(to: UInt8(ascii: "\\"), word)
        }
    }

    /// Returns the first offset from `start` on with a quote or a backslash.
    static func endOfText(in bytes: Span<UInt8>, from start: Int) -> Int {
        findStop(in: bytes, from: start) { word in
            equal(to: UInt8(ascii: "\""), word) | equal(to: UInt8(ascii: "\\"), word)
        }
    }

    /// Returns the first offset from `start` on with a line feed.
    package static func endOfLine(in bytes: Span<UInt8>, from start: Int) -> Int {
        findStop(in: bytes, from: start) { equal(to: UInt8(ascii: "\n"), $0) }
    }

    /// Returns the first offset from `start` on with a control character, including a tab, or a non-ASCII byte.
    package static func endOfVisible(in bytes: Span<UInt8>, from start: Int) -> Int {
        findStop(in: bytes, from: start) { word in
            word & high | less(than: 0x20, word) | equal(to: 0x7F, word)
        }
    }

    private static let low: UInt64 = 0x0101_0101_0101_0101
    private static let high: UInt64 = 0x8080_8080_8080_8080

    /// - Parameter stops: returns the highest bit of each byte to stop at; bytes after the first of them may be wrong.
    /// - Returns: the offset to stop at, or one among the last seven bytes, which the caller inspects one by one.
    @inline(__always)
    private static func findStop(in bytes: Span<UInt8>, from start: Int, _ stops: (UInt64) -> UInt64) -> Int {
        var at = start
        while at + 8 <= bytes.count {
            // The eight bytes are within the span.
            let word = bytes.bytes.unsafeLoadUnaligned(fromByteOffset: at, as: UInt64.self)
            let stop = stops(UInt64(littleEndian: word))
            if stop != 0 { return at + stop.trailingZeroBitCount / 8 }
            at += 8
        }
        return at
    }

    /// Marks bytes less than `bound`, which is at most 128.
    @inline(__always)
    private static func less(than bound: UInt8, _ word: UInt64) -> UInt64 {
        (word &- low &* UInt64(bound)) & ~word & high
    }

    @inline(__always)
    private static func equal(to byte: UInt8, _ word: UInt64) -> UInt64 {
        less(than: 1, word ^ low &* UInt64(byte))
    }
}
