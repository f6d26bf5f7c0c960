/// The members of an `in` list. Like the members of an array literal in Postgres, on which the original server leans:
/// unquoted ones lose the white space around them, and an unquoted `null` is SQL's NULL.
enum FilterList {
    /// Reads `(a,"b,c",null)`; `context` is the condition for messages.
    static func parse(_ text: ArraySlice<UInt8>, in context: String) throws(SubscriptionError) -> [String?] {
        guard text.count >= 2, text.first == UInt8(ascii: "("), text.last == UInt8(ascii: ")") else {
            throw SubscriptionError("the value of in must stand in parentheses in filter condition \(context)")
        }
        let inner = text.dropFirst().dropLast()
        var at = inner.startIndex
        skipSpace(inner, &at)
        guard at < inner.endIndex else { return [] }
        var members: [String?] = []
        while true {
            members.append(try member(inner, &at, in: context))
            guard members.count <= ChangeLimits.listValues else {
                throw SubscriptionError(
                    "the in list has more than \(ChangeLimits.listValues) values in filter condition \(context)")
            }
            guard at < inner.endIndex else { return members }
            at += 1
        }
    }

    /// Reads one member and stops at the comma behind it or at the end.
    private static func member(
        _ text: ArraySlice<UInt8>, _ at: inout Int, in context: String
    ) throws(SubscriptionError) -> String? {
        skipSpace(text, &at)
        if at < text.endIndex, text[at] == UInt8(ascii: "\"") { return try quoted(text, &at, in: context) }
        var bytes: [UInt8] = []
        var kept = 0
        var isPlain = true
        while at < text.endIndex, text[at] != UInt8(ascii: ",") {
            if text[at] == UInt8(ascii: "\\"), at + 1 < text.endIndex {
                at += 1
                bytes.append(text[at])
                kept = bytes.count
                isPlain = false
            } else {
                bytes.append(text[at])
                if !isSpace(text[at]) { kept = bytes.count }
            }
            at += 1
        }
        guard kept > 0 else {
            throw SubscriptionError(#"the in list has an empty value in filter condition \#(context); write "" for it"#)
        }
        let member = String(decoding: bytes[..<kept], as: UTF8.self)
        return isPlain && member.lowercased() == "null" ? nil : member
    }

    private static func quoted(
        _ text: ArraySlice<UInt8>, _ at: inout Int, in context: String
    ) throws(SubscriptionError) -> String {
        var bytes: [UInt8] = []
        at += 1
        while at < text.endIndex, text[at] != UInt8(ascii: "\"") {
            if text[at] == UInt8(ascii: "\\"), at + 1 < text.endIndex { at += 1 }
            bytes.append(text[at])
            at += 1
        }
        guard at < text.endIndex else {
            throw SubscriptionError("a quoted value in the in list has no end in filter condition \(context)")
        }
        at += 1
        skipSpace(text, &at)
        guard at == text.endIndex || text[at] == UInt8(ascii: ",") else {
            throw SubscriptionError(
                "a quoted value in the in list goes on behind its quote in filter condition \(context)")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func skipSpace(_ text: ArraySlice<UInt8>, _ at: inout Int) {
        while at < text.endIndex, isSpace(text[at]) { at += 1 }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0D).contains(byte)
    }
}
