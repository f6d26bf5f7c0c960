import DurableStreams
import HTTP
import Streams
import Testing

/// A request's head from its lines.
func head(_ line: String, _ fields: String...) throws -> HTTPHead {
    var parser = HTTPHeadParser()
    let text = ([line + " HTTP/1.1", "host: hub"] + fields).joined(separator: "\r\n") + "\r\n\r\n"
    guard case .complete(let head, _) = Array(text.utf8).withUnsafeBytes({ parser.parse($0) }) else {
        throw NoHead(text: text)
    }
    return head
}

struct NoHead: Error { let text: String }

func call(_ line: String, _ fields: String...) throws -> StreamCall {
    var parser = HTTPHeadParser()
    let text = ([line + " HTTP/1.1", "host: hub"] + fields).joined(separator: "\r\n") + "\r\n\r\n"
    guard case .complete(let head, _) = Array(text.utf8).withUnsafeBytes({ parser.parse($0) }) else {
        throw NoHead(text: text)
    }
    return try #require(try StreamCall(head))
}

func stream(_ type: String, _ parts: [UInt8]...) throws -> StreamBuffer {
    let buffer = StreamBuffer(
        id: StreamID(7), name: try #require(StreamName("a")), configuration: StreamConfiguration(contentType: type))
    for part in parts { _ = buffer.append(part) }
    return buffer
}

extension HTTPResponse {
    subscript(_ name: String) -> String? { headers.first { $0.name == name }?.value }
    var text: String { String(decoding: body, as: UTF8.self) }
}
