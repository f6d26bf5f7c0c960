import Wire

/// A backend's answer, divided into a stream's messages as it arrives: the events of an event stream (WHATWG HTML,
/// section 9.2.6), the lines of `application/x-ndjson`, or otherwise one JSON value. Pure.
struct ForwardedAnswer {
    enum Failure: Error, Equatable {
        /// A message is larger than a stream can take.
        case tooLarge
        /// An answer that is not an event stream must be JSON.
        case notJSON
    }

    private enum Form { case events, lines, whole }

    private let form: Form
    private let eventMember: String?
    private let most: Int
    /// Bytes of an incomplete line, or of the incomplete answer.
    private var rest: [UInt8] = []
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    private var isBehindReturn = false
    private var data: [UInt8]?
    private var event: String?

    /// - Parameters:
    ///   - contentType: the answer's type.
    ///   - eventMember: the member that receives an event's name if the message lacks it.
    ///   - most: the limit of one message, in bytes.
    init(contentType: String, eventMember: String?, most: Int) {
        let type = contentType.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }
        switch String(Substring(type)).lowercased() {
        case "text/event-stream": form = .events
        case "application/x-ndjson", "application/jsonl", "application/json-lines": form = .lines
        default: form = .whole
        }
        self.eventMember = eventMember
        self.most = most
    }

    /// - Returns: the messages that these bytes complete, each one JSON value.
    mutating func takeBytes(_ bytes: UnsafeBufferPointer<UInt8>) throws(Failure) -> [[UInt8]] {
        guard form != .whole else {
            guard rest.count + bytes.count <= most else { throw .tooLarge }
            rest += bytes
            return []
        }
        var messages: [[UInt8]] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\n") where isBehindReturn: isBehindReturn = false
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                isBehindReturn = byte == UInt8(ascii: "\r")
                let line = rest
                rest.removeAll(keepingCapacity: true)
                if let message = try message(endingWith: line) { messages.append(message) }
            default:
                isBehindReturn = false
                rest.append(byte)
                guard rest.count <= most else { throw .tooLarge }
            }
        }
        return messages
    }

    /// The answer has ended.
    ///
    /// - Returns: what was incomplete until now. An event without its empty line is dropped.
    mutating func finishAnswer() throws(Failure) -> [[UInt8]] {
        defer { rest = [] }
        guard form != .events, rest.contains(where: { !Self.isSpace($0) }) else { return [] }
        return [try parseJSON(rest)]
    }

    private mutating func message(endingWith line: [UInt8]) throws(Failure) -> [UInt8]? {
        guard form == .events else {
            return line.allSatisfy(Self.isSpace) ? nil : try parseJSON(line)
        }
        guard !line.isEmpty else { return takeEvent() }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch line[..<colon] {
        case _ where line[..<colon].elementsEqual("data".utf8):
            guard (data?.count ?? 0) + value.count < most else { throw .tooLarge }
            data = data.map { $0 + [UInt8(ascii: "\n")] + value } ?? Array(value)
        case _ where line[..<colon].elementsEqual("event".utf8): event = String(decoding: value, as: UTF8.self)
        default: break
        }
        return nil
    }

    private mutating func takeEvent() -> [UInt8]? {
        defer { (data, event) = (nil, nil) }
        guard let data else { return nil }
        let json: JSON
        do {
            json = try JSON(parsing: data)
        } catch {
            // A word such as [DONE] becomes a JSON string.
            return JSONString.encode(String(decoding: data, as: UTF8.self))
        }
        guard let event, !event.isEmpty, let eventMember, json.kind == .object, json[eventMember] == nil else {
            return Array(json.bytes)
        }
        let members = json.bytes.dropFirst().drop(while: Self.isSpace)
        let isEmpty = members.first == UInt8(ascii: "}")
        return Array("{".utf8) + JSONString.encode(eventMember) + [UInt8(ascii: ":")] + JSONString.encode(event)
            + (isEmpty ? [] : [UInt8(ascii: ",")]) + members
    }

    private func parseJSON(_ bytes: [UInt8]) throws(Failure) -> [UInt8] {
        do { return Array(try JSON(parsing: bytes).bytes) } catch { throw .notJSON }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
}
