/// UTF-8 as RFC 3629 defines it: shortest forms only, no surrogates, nothing above U+10FFFF.
package enum UTF8Scanner {
    /// Steps over one character of two to four bytes.
    static func skipCharacter(in bytes: Span<UInt8>, from at: inout Int) throws(JSON.SyntaxError) {
        let lead = bytes[at]
        let second: ClosedRange<UInt8>
        let length: Int
        switch lead {
        case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: throw JSON.SyntaxError(offset: at)
        }
        guard at + length <= bytes.count, second.contains(bytes[at + 1]) else { throw JSON.SyntaxError(offset: at) }
        for i in 2..<max(length, 2) where bytes[at + i] & 0xC0 != 0x80 { throw JSON.SyntaxError(offset: at) }
        at += length
    }

    /// Returns the number of bytes at the end that begin an incomplete character. Bytes that are not UTF-8 at all count
    /// as complete.
    package static func unfinishedCount(in bytes: [UInt8]) -> Int {
        for count in 1...3 where count <= bytes.count {
            let lead = bytes[bytes.count - count]
            guard lead & 0xC0 == 0x80 else {
                let length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1
                return length > count ? count : 0
            }
        }
        return 0
    }

    package static func isValid(_ bytes: Span<UInt8>) -> Bool {
        var at = 0
        while at < bytes.count {
            if bytes[at] < 0x80 {
                at += 1
            } else {
                do { try skipCharacter(in: bytes, from: &at) } catch { return false }
            }
        }
        return true
    }
}

/// Strings compared by their bytes, as clients and Postgres do: Swift equates strings that look alike.
///
/// The iterators of Swift's strings take some nanoseconds per byte, and these comparisons are made for every member of
/// every frame.
extension String {
    package func hasSameBytes(as other: String) -> Bool {
        other.utf8.withContiguousStorageIfAvailable(hasBytes) ?? utf8.elementsEqual(other.utf8)
    }

    package func hasSameBytes(as other: ArraySlice<UInt8>) -> Bool {
        other.withUnsafeBufferPointer(hasBytes)
    }

    private func hasBytes(_ others: UnsafeBufferPointer<UInt8>) -> Bool {
        utf8.withContiguousStorageIfAvailable { mine in
            guard mine.count == others.count else { return false }
            // Topics and IDs have common prefixes, so comparing from the end finds differences sooner.
            var at = mine.count
            while at > 0 {
                at -= 1
                if mine[at] != others[at] { return false }
            }
            return true
        } ?? utf8.elementsEqual(others)
    }
}
