/// Walks JSON text (RFC 8259) by offsets: checks it once, and finds values in it afterwards. Builds nothing.
package enum JSONScanner {
    /// The maximum nesting of arrays and objects. Deeper input is refused, so that no client can exhaust a loop's
    /// stack.
    package static let depthLimit = 128

    /// Returns the range of the only value in `bytes`, without white space around it.
    package static func wholeValue(in bytes: Span<UInt8>) throws(JSON.SyntaxError) -> Range<Int> {
        let start = skipSpace(in: bytes, from: 0)
        var at = start
        try checkValue(in: bytes, from: &at, depth: 0)
        let end = at
        at = skipSpace(in: bytes, from: at)
        guard at == bytes.count else { throw JSON.SyntaxError(offset: at) }
        return start..<end
    }

    static func skipSpace(in bytes: Span<UInt8>, from start: Int) -> Int {
        var at = start
        while at < bytes.count {
            switch bytes[at] {
            case 0x20, 0x09, 0x0A, 0x0D: at += 1
            default: return at
            }
        }
        return at
    }

    // MARK: Checking

    private static func checkValue(in bytes: Span<UInt8>, from at: inout Int, depth: Int) throws(JSON.SyntaxError) {
        guard at < bytes.count else { throw JSON.SyntaxError(offset: at) }
        switch bytes[at] {
        case UInt8(ascii: "\""): try checkString(in: bytes, from: &at)
        case UInt8(ascii: "{"): try checkObject(in: bytes, from: &at, depth: depth + 1)
        case UInt8(ascii: "["): try checkArray(in: bytes, from: &at, depth: depth + 1)
        case UInt8(ascii: "t"): try checkWord("true", in: bytes, from: &at)
        case UInt8(ascii: "f"): try checkWord("false", in: bytes, from: &at)
        case UInt8(ascii: "n"): try checkWord("null", in: bytes, from: &at)
        default: try checkNumber(in: bytes, from: &at)
        }
    }

    private static func checkObject(in bytes: Span<UInt8>, from at: inout Int, depth: Int) throws(JSON.SyntaxError) {
        guard depth <= depthLimit else { throw JSON.SyntaxError(offset: at) }
        at = skipSpace(in: bytes, from: at + 1)
        if at < bytes.count, bytes[at] == UInt8(ascii: "}") {
            at += 1
            return
        }
        while true {
            guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else { throw JSON.SyntaxError(offset: at) }
            try checkString(in: bytes, from: &at)
            at = skipSpace(in: bytes, from: at)
            guard at < bytes.count, bytes[at] == UInt8(ascii: ":") else { throw JSON.SyntaxError(offset: at) }
            at = skipSpace(in: bytes, from: at + 1)
            try checkValue(in: bytes, from: &at, depth: depth)
            if try endsCollection(with: UInt8(ascii: "}"), in: bytes, from: &at) { return }
        }
    }

    private static func checkArray(in bytes: Span<UInt8>, from at: inout Int, depth: Int) throws(JSON.SyntaxError) {
        guard depth <= depthLimit else { throw JSON.SyntaxError(offset: at) }
        at = skipSpace(in: bytes, from: at + 1)
        if at < bytes.count, bytes[at] == UInt8(ascii: "]") {
            at += 1
            return
        }
        while true {
            try checkValue(in: bytes, from: &at, depth: depth)
            if try endsCollection(with: UInt8(ascii: "]"), in: bytes, from: &at) { return }
        }
    }

    /// Steps over a comma (false) or the closing bracket (true).
    private static func endsCollection(
        with close: UInt8, in bytes: Span<UInt8>, from at: inout Int
    ) throws(JSON.SyntaxError) -> Bool {
        at = skipSpace(in: bytes, from: at)
        guard at < bytes.count else { throw JSON.SyntaxError(offset: at) }
        if bytes[at] == close {
            at += 1
            return true
        }
        guard bytes[at] == UInt8(ascii: ",") else { throw JSON.SyntaxError(offset: at) }
        at = skipSpace(in: bytes, from: at + 1)
        return false
    }

    private static func checkWord(
        _ word: StaticString, in bytes: Span<UInt8>, from at: inout Int
    ) throws(JSON.SyntaxError) {
        for i in 0..<word.utf8CodeUnitCount {
            guard at < bytes.count, bytes[at] == word.utf8Start[i] else { throw JSON.SyntaxError(offset: at) }
            at += 1
        }
    }

    private static func checkNumber(in bytes: Span<UInt8>, from at: inout Int) throws(JSON.SyntaxError) {
        func checkDigits(_ at: inout Int) throws(JSON.SyntaxError) {
            let start = at
            while at < bytes.count, bytes[at] &- 0x30 < 10 { at += 1 }
            guard at > start else { throw JSON.SyntaxError(offset: at) }
        }
        if bytes[at] == UInt8(ascii: "-") { at += 1 }
        if at < bytes.count, bytes[at] == UInt8(ascii: "0") {
            at += 1
        } else {
            try checkDigits(&at)
        }
        if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
            at += 1
            try checkDigits(&at)
        }
        if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            if at < bytes.count, bytes[at] == UInt8(ascii: "+") || bytes[at] == UInt8(ascii: "-") { at += 1 }
            try checkDigits(&at)
        }
    }

    private static func checkString(in bytes: Span<UInt8>, from at: inout Int) throws(JSON.SyntaxError) {
        at += 1
        while at < bytes.count {
            let byte = bytes[at]
            switch byte {
            case UInt8(ascii: "\""):
                at += 1
                return
            case UInt8(ascii: "\\"): try checkEscape(in: bytes, from: &at)
            case 0x20..<0x80: at = PlainRun.endOfASCII(in: bytes, from: at + 1)
            case 0x80...: try UTF8Scanner.skipCharacter(in: bytes, from: &at)
            default: throw JSON.SyntaxError(offset: at)
            }
        }
        throw JSON.SyntaxError(offset: at)
    }

    private static func checkEscape(in bytes: Span<UInt8>, from at: inout Int) throws(JSON.SyntaxError) {
        at += 1
        guard at < bytes.count else { throw JSON.SyntaxError(offset: at) }
        switch bytes[at] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            at += 1
        case UInt8(ascii: "u"):
            at += 1
            for _ in 0..<4 {
                guard at < bytes.count, Hexadecimal.value(bytes[at]) != nil else {
                    throw JSON.SyntaxError(offset: at)
                }
                at += 1
            }
        default:
            throw JSON.SyntaxError(offset: at)
        }
    }

    // MARK: Walking over checked text

    /// Returns the offset after the checked value that starts at `start`.
    static func endOfValue(in bytes: Span<UInt8>, from start: Int) -> Int {
        var at = start
        var depth = 0
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "\""):
                at = endOfString(in: bytes, from: at)
                if depth == 0 { return at }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return at }
                depth -= 1
                if depth == 0 { return at + 1 }
            case UInt8(ascii: ","), 0x20, 0x09, 0x0A, 0x0D:
                if depth == 0 { return at }
            default:
                break
            }
            at += 1
        }
        return at
    }

    private static func endOfString(in bytes: Span<UInt8>, from start: Int) -> Int {
        var at = PlainRun.endOfText(in: bytes, from: start + 1)
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "\""): return at + 1
            case UInt8(ascii: "\\"): at = PlainRun.endOfText(in: bytes, from: at + 2)
            default: at += 1
            }
        }
        return bytes.count
    }

    // Bytes that are trusted wrongly, as from other hubs, end the list at the first byte that is not JSON: nothing here
    // may crash the process or loop forever.

    /// Returns the next element of a checked array. `at` starts after the opening bracket; nil at the closing one.
    static func nextElement(in bytes: Span<UInt8>, from at: inout Int) -> Range<Int>? {
        at = skipSpace(in: bytes, from: at)
        if at < bytes.count, bytes[at] == UInt8(ascii: ",") { at = skipSpace(in: bytes, from: at + 1) }
        guard at < bytes.count, bytes[at] != UInt8(ascii: "]") else { return nil }
        let start = at
        at = endOfValue(in: bytes, from: at)
        return at > start ? start..<at : nil
    }

    /// Returns the next member of a checked object, its key without quotes. `at` starts after the opening brace.
    static func nextMember(in bytes: Span<UInt8>, from at: inout Int) -> (key: Range<Int>, value: Range<Int>)? {
        at = skipSpace(in: bytes, from: at)
        if at < bytes.count, bytes[at] == UInt8(ascii: ",") { at = skipSpace(in: bytes, from: at + 1) }
        guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else { return nil }
        let keyStart = at + 1
        at = endOfString(in: bytes, from: at)
        guard at > keyStart else { return nil }
        let key = keyStart..<(at - 1)
        at = skipSpace(in: bytes, from: skipSpace(in: bytes, from: at) + 1)
        let start = at
        at = endOfValue(in: bytes, from: at)
        // Past the end if nothing follows the key.
        guard at > start else { return nil }
        return (key, start..<at)
    }
}
