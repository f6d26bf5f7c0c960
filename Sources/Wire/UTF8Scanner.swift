/// UTF-8 as RFC 3629 defines it: shortest forms only, no surrogates, nothing above U+10FFFF.
package enum UTF8Scanner {
    /// Steps over one character of two to four bytes.
    static func step(in bytes: Span<UInt8>, from at: inout Int) throws(JSON.SyntaxError) {
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

    package static func isValid(_ bytes: Span<UInt8>) -> Bool {
        var at = 0
        while at < bytes.count {
            if bytes[at] < 0x80 {
                at += 1
            } else {
                do { try step(in: bytes, from: &at) } catch { return false }
            }
        }
        return true
    }
}
