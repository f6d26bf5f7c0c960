import ArgumentParser
import Glibc
import Wire

/// The formats of model APIs' streams, and the place of the text in them.
enum ReplyFormat: String, ExpressibleByArgument, CaseIterable {
    /// Bytes as they are.
    case raw
    /// OpenAI: `choices[0].delta.content` of chat completions, `delta` of `response.output_text.delta`.
    case openai
    /// Anthropic: `delta.text` of `content_block_delta`.
    case anthropic
    /// The Vercel AI SDK's UI message stream: `delta` of `text-delta`.
    case vercel

    /// The text that an event adds to the reply; nil if it adds none.
    func extractText(of data: String) -> String? {
        let json: JSON
        do { json = try JSON(parsing: Array(data.utf8)) } catch { return nil }
        switch self {
        case .raw: return data
        case .openai:
            if json["type"]?.string == "response.output_text.delta" { return json["delta"]?.string }
            return json["choices"]?.elements(upTo: 1).first?["delta"]?["content"]?.string
        case .anthropic:
            guard json["type"]?.string == "content_block_delta", json["delta"]?["type"]?.string == "text_delta" else {
                return nil
            }
            return json["delta"]?["text"]?.string
        case .vercel: return json["type"]?.string == "text-delta" ? json["delta"]?.string : nil
        }
    }
}

/// A reply that arrives through a descriptor. Blocks the calling thread.
struct ReplyInput {
    private let descriptor: Int32
    private let format: ReplyFormat
    private var events = ServerEvents()
    /// Text that did not fit into the buffer.
    private var rest: ArraySlice<UInt8> = []

    /// A body that is known in advance.
    init(_ bytes: [UInt8]) {
        descriptor = -1
        format = .raw
        rest = bytes[...]
    }

    init(_ descriptor: Int32, _ format: ReplyFormat) {
        self.descriptor = descriptor
        self.format = format
    }

    /// Fills the buffer with the next input, at least one byte.
    ///
    /// - Returns: the number of bytes; 0 at the end.
    mutating func readBytes(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        while rest.isEmpty {
            guard descriptor >= 0 else { return 0 }
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return 0 }
            guard format != .raw else { return count }
            let piece = Array(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            rest = events.parsePiece(piece).flatMap { Array((format.extractText(of: $0.data) ?? "").utf8) }[...]
        }
        let piece = rest.prefix(buffer.count)
        buffer.copyBytes(from: piece)
        rest = rest.dropFirst(piece.count)
        return piece.count
    }
}

/// Parses server-sent events (WHATWG HTML, "Server-sent events") from pieces.
struct ServerEvents {
    struct Event: Equatable {
        let name: String
        let data: String
    }

    private var unread: [UInt8] = []
    private var name = ""
    private var data: [String] = []

    /// - Returns: the events that this piece completes.
    mutating func parsePiece(_ piece: [UInt8]) -> [Event] {
        unread += piece
        var events: [Event] = []
        while let end = unread.firstIndex(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
            var next = end + 1
            if unread[end] == UInt8(ascii: "\r") {
                // Only the next byte shows whether the line ends with CR or CR LF.
                guard next < unread.count else { break }
                if unread[next] == UInt8(ascii: "\n") { next += 1 }
            }
            let line = String(decoding: unread[..<end], as: UTF8.self)
            unread.removeFirst(next)
            if let event = parseLine(line) { events.append(event) }
        }
        return events
    }

    private mutating func parseLine(_ line: String) -> Event? {
        guard !line.isEmpty else {
            defer { (name, data) = ("", []) }
            return data.isEmpty ? nil : Event(name: name.isEmpty ? "message" : name, data: data.joined(separator: "\n"))
        }
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count > 1 ? parts[1] : ""
        if value.first == " " { value = value.dropFirst() }
        switch parts[0] {
        case "event": name = String(value)
        case "data": data.append(String(value))
        default: break
        }
        return nil
    }
}
