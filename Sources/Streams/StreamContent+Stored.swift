import Wire

extension StreamContent {
    /// Converts a client's bytes to the form that readers get: each JSON message on a line of its own.
    ///
    /// - Parameter isFirst: the bytes come with the stream's creation, where an array may be empty (Durable Streams, section 9.1.3).
    package func storedBytes(_ body: [UInt8], isFirst: Bool) throws(StreamRefusal) -> [UInt8] {
        guard !body.isEmpty else { return [] }
        switch self {
        case .binary: return body
        case .text:
            guard UTF8Scanner.isValid(body.span) else { throw .notUTF8 }
            return body
        case .json:
            let json: JSON
            do { json = try JSON(parsing: body) } catch { throw .notJSON }
            guard json.kind == .array else { return Self.jsonLine(json) }
            let messages = json.elements
            guard isFirst || !messages.isEmpty else { throw .emptyArray }
            var out: [UInt8] = []
            out.reserveCapacity(body.count + messages.count)
            for message in messages { out += Self.jsonLine(message) }
            return out
        }
    }

    /// Within a string, a line feed is escaped (RFC 8259, section 7), so any that remain stand between tokens.
    private static func jsonLine(_ message: JSON) -> [UInt8] {
        var out = Array(message.bytes)
        for place in out.indices where out[place] == UInt8(ascii: "\n") || out[place] == UInt8(ascii: "\r") {
            out[place] = UInt8(ascii: " ")
        }
        out.append(UInt8(ascii: "\n"))
        return out
    }
}
