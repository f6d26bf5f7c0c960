import Wire

/// Parses the text of a filter. Works on bytes, because every character with a meaning in the grammar is ASCII.
struct FilterParser {
    private let bytes: [UInt8]

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    static func isSpecial(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "\""), UInt8(ascii: "\\"): true
        default: false
        }
    }

    func parseConditions() throws(SubscriptionError) -> [FilterCondition] {
        // Postgres has no text with a NUL, and a C library would cut a query at one.
        guard !bytes.contains(0) else { throw SubscriptionError("a filter must not contain a NUL character") }
        guard bytes.count <= ChangeLimits.filterBytes else {
            throw SubscriptionError(
                "filter \(quoteBytes(bytes[...])) is longer than \(ChangeLimits.filterBytes) bytes; use a shorter one")
        }
        guard !Self.trimSpace(bytes[...]).isEmpty else { return [] }
        var conditions: [FilterCondition] = []
        let segments = splitSegments()
        guard segments.count <= ChangeLimits.conditions else {
            throw SubscriptionError(
                "filter \(quoteBytes(bytes[...])) has more than \(ChangeLimits.conditions) conditions; use fewer")
        }
        for index in segments.indices {
            let condition = try parseCondition(segments[index], adviceAt: (segments, index))
            try FilterBounds.checkCondition(condition)
            conditions.append(condition)
        }
        return conditions
    }

    // MARK: Splitting

    private struct Segment {
        let text: ArraySlice<UInt8>
        /// Index at which the column ends; nil if there is no `=`, or only one within parentheses or quotes.
        let equals: Int?
    }

    private func splitSegments() -> [Segment] {
        var segments: [Segment] = []
        var start = 0
        var equals: Int?
        var sawEquals = false
        var depth = 0
        var isQuoted = false
        var previous: UInt8 = 0
        var at = 0
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "="), !sawEquals {
                sawEquals = true
                if depth == 0, !isQuoted { equals = at }
            }
            previous = at > start ? bytes[at - 1] : 0
            if isQuoted {
                if byte == UInt8(ascii: "\\"), at + 1 < bytes.count {
                    at += 1
                } else if byte == UInt8(ascii: "\"") {
                    isQuoted = false
                }
            } else if byte == UInt8(ascii: "\"") {
                isQuoted = Self.opensQuote(behind: previous)
            } else if byte == UInt8(ascii: "(") {
                depth += 1
            } else if byte == UInt8(ascii: ")") {
                depth = max(0, depth - 1)
            } else if byte == UInt8(ascii: ","), depth == 0 {
                segments.append(Segment(text: bytes[start..<at], equals: equals))
                start = at + 1
                (equals, sawEquals) = (nil, false)
            }
            at += 1
        }
        segments.append(Segment(text: bytes[start...], equals: equals))
        return segments
    }

    private static func opensQuote(behind byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "(") || byte == UInt8(ascii: ",")
    }

    // MARK: Conditions

    /// - Parameter place: the segment's place among the others, for advice if it is not a condition.
    private func parseCondition(
        _ segment: Segment, adviceAt place: ([Segment], Int)
    ) throws(SubscriptionError) -> FilterCondition {
        let text = Self.trimSpace(segment.text)
        guard !text.isEmpty else {
            throw SubscriptionError("filter \(quoteBytes(bytes[...])) has an empty condition; check for extra commas")
        }
        guard let equals = segment.equals, text.startIndex < equals else { throw formlessError(text, place) }
        var rest = text[(equals + 1)...]
        guard rest.first != UInt8(ascii: "(") else {
            throw SubscriptionError(
                "filter condition \(quoteBytes(text)) is a group, which filters do not have: conditions are joined by a comma, "
                    + "and all of them must hold; for `or`, add an entry to postgres_changes for each alternative")
        }
        let isNegated = rest.starts(with: "not.".utf8)
        if isNegated { rest = rest.dropFirst(4) }
        guard let dot = rest.firstIndex(of: UInt8(ascii: ".")) else { throw formlessError(text, place) }
        guard let name = FilterOperator(rawValue: makeString(rest[..<dot])) else {
            throw SubscriptionError(
                "\(quoteBytes(rest[..<dot])) in filter condition \(quoteBytes(text)) is not an operator; "
                    + "use one of \(FilterOperator.list)")
        }
        let value = rest[(dot + 1)...]
        return FilterCondition(
            column: Name(makeString(text[..<equals])), isNegated: isNegated, test: try parseTest(name, value, in: text))
    }

    /// The error for a text that is not a condition. After a comma it may be the rest of the value before it.
    private func formlessError(_ text: ArraySlice<UInt8>, _ place: ([Segment], Int)) -> SubscriptionError {
        let sentence = "filter condition \(quoteBytes(text)) is not of the form column=operator.value"
        guard let whole = quotedWhole(place) else { return SubscriptionError(sentence) }
        return SubscriptionError(
            sentence + "; a value with a comma stands in double quotes: write \(whole)")
    }

    /// The condition that the segments around a comma form if the comma belongs to a value; nil if they form none.
    private func quotedWhole(_ place: ([Segment], Int)) -> String? {
        let (segments, index) = place
        guard index > 0, segments[index - 1].text.last != UInt8(ascii: "\""), let equals = segments[index - 1].equals
        else { return nil }
        let last = segments[index...].prefix { $0.equals == nil }.last ?? segments[index]
        let whole = bytes[segments[index - 1].text.startIndex..<last.text.endIndex]
        var test = whole[(equals + 1)...]
        if test.starts(with: "not.".utf8) { test = test.dropFirst(4) }
        guard let dot = test.firstIndex(of: UInt8(ascii: ".")),
            let name = FilterOperator(rawValue: makeString(test[..<dot])), name != .inList, name != .isKeyword
        else { return nil }
        let value = whole[(dot + 1)...].flatMap { byte in
            byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? [UInt8(ascii: "\\"), byte] : [byte]
        }
        let condition = makeString(Self.trimSpace(whole[...dot])) + "\"" + makeString(value) + "\""
        return condition.utf8.count <= 200 ? condition : nil
    }

    private func parseTest(
        _ name: FilterOperator, _ value: ArraySlice<UInt8>, in text: ArraySlice<UInt8>
    ) throws(SubscriptionError) -> FilterCondition.Test {
        switch name {
        case .inList:
            return .list(try FilterList.parse(value, in: quoteBytes(text)))
        case .isKeyword:
            let word = makeString(Self.unquoteValue(value) ?? Array(value))
            guard let keyword = FilterCondition.Keyword(rawValue: word) else {
                throw SubscriptionError(
                    "\(SubscriptionError.quoteText(word)) in filter condition \(quoteBytes(text)) must be null, true, false or "
                        + "unknown")
            }
            return .keyword(keyword)
        default:
            return .value(name, makeString(Self.unquoteValue(value) ?? Array(value)))
        }
    }

    /// The text of a value that is quoted as a whole; nil for any other value.
    private static func unquoteValue(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        guard value.first == UInt8(ascii: "\"") else { return nil }
        var out: [UInt8] = []
        var at = value.startIndex + 1
        while at < value.endIndex {
            switch value[at] {
            case UInt8(ascii: "\""):
                return at + 1 == value.endIndex ? out : nil
            case UInt8(ascii: "\\") where at + 1 < value.endIndex:
                out.append(value[at + 1])
                at += 2
            case let byte:
                out.append(byte)
                at += 1
            }
        }
        return nil
    }

    private static func trimSpace(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if let first = bytes.first, let last = bytes.last, isPlain(first), isPlain(last) { return bytes }
        let scalars = String(decoding: bytes, as: UTF8.self).unicodeScalars
        let leading = scalars.prefix { $0.properties.isWhitespace }
        guard leading.endIndex < scalars.endIndex else { return bytes[bytes.endIndex...] }
        let trailing = scalars.reversed().prefix { $0.properties.isWhitespace }
        let width = { (scalar: Unicode.Scalar) in UTF8.width(scalar) }
        return bytes.dropFirst(leading.map(width).reduce(0, +)).dropLast(trailing.map(width).reduce(0, +))
    }

    /// ASCII other than white space and control characters.
    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte)
    }

    private func makeString(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: Array(bytes), as: UTF8.self)
    }

    private func quoteBytes(_ bytes: ArraySlice<UInt8>) -> String {
        SubscriptionError.quoteText(makeString(bytes))
    }
}

/// The members of an `in` list. They follow the array literals of Postgres, which the original server uses: unquoted
/// members lose surrounding white space, and an unquoted `null` is SQL's NULL.
enum FilterList {
    /// Parses `(a,"b,c",null)`; `context` is the condition for messages.
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
            members.append(try parseMember(inner, &at, in: context))
            guard members.count <= ChangeLimits.listValues else {
                throw SubscriptionError(
                    "the in list has more than \(ChangeLimits.listValues) values in filter condition \(context)")
            }
            guard at < inner.endIndex else { return members }
            at += 1
        }
    }

    /// Parses one member and stops at the comma after it or at the end.
    private static func parseMember(
        _ text: ArraySlice<UInt8>, _ at: inout Int, in context: String
    ) throws(SubscriptionError) -> String? {
        skipSpace(text, &at)
        if at < text.endIndex, text[at] == UInt8(ascii: "\"") { return try parseQuoted(text, &at, in: context) }
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

    private static func parseQuoted(
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
                "a quoted value in the in list goes on after its closing quote in filter condition \(context)")
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
