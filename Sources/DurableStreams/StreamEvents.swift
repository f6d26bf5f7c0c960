package import HTTP
package import Streams
import Wire

/// The events for a live reader with `live=sse` (Durable Streams, section 5.8): `data` with bytes of the stream, each
/// followed by a `control` with the reader's position.
package enum StreamEvents {
    /// Whether the answer's head has `stream-sse-data-encoding: base64`.
    package static func isEncoded(_ content: StreamContent) -> Bool { content == .binary }

    /// The head of a streaming answer.
    ///
    /// - Parameter offset: nil for an offset of another generation.
    /// - Throws: the answer to a reader with an invalid offset.
    package static func head(of stream: StreamBuffer, from offset: Int?) throws(Refused) -> HTTPResponse {
        let snapshot = stream.snapshot
        guard let offset else { throw Refused(response: StreamPage.superseded(by: snapshot)) }
        guard StreamPiece(of: stream, in: snapshot, from: offset, most: 1) != nil else {
            throw Refused(response: StreamPage.complaint(about: offset, in: snapshot))
        }
        var headers = StreamResponse.security
        headers += [("cache-control", "no-store, no-transform"), ("x-accel-buffering", "no")]
        if isEncoded(stream.configuration.content) { headers.append(("stream-sse-data-encoding", "base64")) }
        return HTTPResponse(status: 200, contentType: "text/event-stream", headers: headers)
    }

    package struct Refused: Error { package let response: HTTPResponse }

    /// The next part for a reader.
    package struct Block: Sendable {
        package let bytes: [UInt8]
        /// The reader's offset after the block.
        package let end: Int
        /// The stream's status; nil if it already has more content.
        package let status: StreamStatus?
    }

    /// The most bytes of a stream in one block, except for a single larger message.
    private static let bytes = 262_144

    /// - Parameter offset: the end of a block, or an offset that `head` accepted.
    package static func block(of stream: StreamBuffer, from offset: Int, cursor: String) -> Block? {
        let snapshot = stream.snapshot
        guard let piece = StreamPiece(of: stream, in: snapshot, from: offset, most: Self.bytes) else { return nil }
        let status = piece.end == snapshot.end ? snapshot.status : nil
        return Block(
            bytes: makeBlock(
                piece.bytes, snapshot.configuration.content,
                upTo: StreamPosition.offsetText(piece.end, of: snapshot.id),
                status,
                cursor: cursor),
            end: piece.end, status: status)
    }

    // MARK: Plain events

    /// The head of an answer with plain events.
    package static var headOfMessages: HTTPResponse {
        HTTPResponse(
            status: 200, contentType: "text/event-stream",
            headers: StreamResponse.security + [
                ("cache-control", "no-store, no-transform"), ("x-accel-buffering", "no"),
            ])
    }

    /// The content after an offset as plain events: one for each message; for text or bytes, one for everything available.
    ///
    /// - Parameters:
    ///   - offset: the end of a block; an offset that is not readable is replaced by the earliest one kept.
    ///   - member: the member of a message whose text becomes the event's name.
    package static func messages(of stream: StreamBuffer, from offset: Int, namedBy member: String?) -> Block? {
        let snapshot = stream.snapshot
        let start = StreamPiece(of: stream, in: snapshot, from: offset, most: 1) == nil ? snapshot.start : offset
        guard let piece = StreamPiece(of: stream, in: snapshot, from: start, most: Self.bytes) else { return nil }
        var out: [UInt8] = []
        var end = start
        func addEvent(_ name: String?, _ bytes: ArraySlice<UInt8>, length: Int) {
            end += length
            out += "id: \(StreamEventID(stream: snapshot.id, end: end).text)\n".utf8
            if let name { out += "event: \(name)\n".utf8 }
            for part in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
                appendLine(part, into: &out)
            }
            out.append(UInt8(ascii: "\n"))
        }
        switch snapshot.configuration.content {
        case .json:
            for message in piece.bytes.split(separator: UInt8(ascii: "\n")) {
                addEvent(member.flatMap { eventName(of: message, by: $0) }, message, length: message.count + 1)
            }
        case .text where !piece.isEmpty:
            // A carriage return would end the line.
            let text = piece.bytes.map { $0 == UInt8(ascii: "\r") ? UInt8(ascii: "\n") : $0 }
            addEvent(nil, text[...], length: piece.bytes.count)
        case .binary where !piece.isEmpty:
            var text: [UInt8] = []
            Base64.append(piece.bytes, to: &text)
            addEvent(nil, text[...], length: piece.bytes.count)
        case .text, .binary: break
        }
        return Block(bytes: out, end: piece.end, status: piece.end == snapshot.end ? snapshot.status : nil)
    }

    /// Nil if there is none, or if it would break a line.
    private static func eventName(of message: ArraySlice<UInt8>, by member: String) -> String? {
        guard let name = JSON(trusted: message)[member]?.string, !name.isEmpty,
            !name.utf8.contains(where: { $0 < 0x20 })
        else { return nil }
        return name
    }

    /// A line that a reader ignores, sent on idle connections.
    package static let comment = Array(":\n\n".utf8)

    /// One `data` event and its `control`, or the `control` alone if nothing is new.
    ///
    /// - Parameters:
    ///   - bytes: the stream's bytes, cut where its content may be cut.
    ///   - end: where the next block begins, in the form of `StreamPosition`.
    ///   - status: the stream's status if this reaches its end; nil if there is more.
    ///   - cursor: made by `CacheCursor`; left out once the stream has ended.
    package static func makeBlock(
        _ bytes: [UInt8], _ content: StreamContent, upTo end: String, _ status: StreamStatus?, cursor: String
    ) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count + bytes.count / 8 + 160)
        if !bytes.isEmpty { appendData(bytes, content, into: &out) }
        out += "event: control\ndata: {\"streamNextOffset\":\"".utf8
        out += end.utf8
        out.append(UInt8(ascii: "\""))
        let ending = status?.ending
        if ending == nil {
            out += ",\"streamCursor\":\"\(cursor)\"".utf8
        }
        if status != nil { out += ",\"upToDate\":true".utf8 }
        if status == .stalled { out += ",\"status\":\"stalled\"".utf8 }
        if let ending {
            out += ",\"streamClosed\":true,\"status\":\"\(ending.reason.rawValue)\"".utf8
            if let row = ending.row {
                out += ",\"row\":".utf8
                out += row
            }
        }
        out += "}\n\n".utf8
        return out
    }

    private static func appendData(_ bytes: [UInt8], _ content: StreamContent, into out: inout [UInt8]) {
        out += "event: data\n".utf8
        switch content {
        case .binary:
            out += "data: ".utf8
            Base64.append(bytes, to: &out)
            out.append(UInt8(ascii: "\n"))
        case .json:
            appendLine(CollectionOfOne(UInt8(ascii: "[")), into: &out)
            var rest = bytes[...]
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                out += "data: ".utf8
                out += rest[..<end]
                rest = rest[(end + 1)...]
                out += rest.isEmpty ? "\n".utf8 : ",\n".utf8
            }
            appendLine(CollectionOfOne(UInt8(ascii: "]")), into: &out)
        case .text:
            // In an event stream, a carriage return also ends a line, and arrives as a line feed (WHATWG HTML, section 9.2.6).
            var rest = bytes[...]
            while let end = rest.firstIndex(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
                appendLine(rest[..<end], into: &out)
                let isPair =
                    rest[end] == UInt8(ascii: "\r") && end + 1 < rest.endIndex && rest[end + 1] == UInt8(ascii: "\n")
                rest = rest[(end + (isPair ? 2 : 1))...]
            }
            appendLine(rest, into: &out)
        }
        out.append(UInt8(ascii: "\n"))
    }

    private static func appendLine(_ bytes: some Collection<UInt8>, into out: inout [UInt8]) {
        out += "data: ".utf8
        out += bytes
        out.append(UInt8(ascii: "\n"))
    }
}
