package import HTTP
package import Streams
import Wire

/// What a live reader of `live=sse` is sent (Durable Streams, section 5.8): `data` with bytes of the stream, and behind each a `control`
/// that says where the reader is.
package enum StreamEvents {
    /// Whether the answer's head has `stream-sse-data-encoding: base64`.
    package static func isEncoded(_ content: StreamContent) -> Bool { content == .binary }

    /// The head of the answer, whose body goes on.
    ///
    /// - Throws: the answer to a reader whose offset is none.
    package static func head(of stream: StreamBuffer, from offset: Int) throws(Refused) -> HTTPResponse {
        let snapshot = stream.snapshot
        guard StreamPiece(of: stream, in: snapshot, from: offset, most: 1) != nil else {
            throw Refused(response: StreamPage.complaint(about: offset, in: snapshot))
        }
        var headers = StreamResponse.security
        headers += [("cache-control", "no-store, no-transform"), ("x-accel-buffering", "no")]
        if isEncoded(stream.configuration.content) { headers.append(("stream-sse-data-encoding", "base64")) }
        return HTTPResponse(status: 200, contentType: "text/event-stream", headers: headers)
    }

    package struct Refused: Error { package let response: HTTPResponse }

    /// What a reader is sent next.
    package struct Block: Sendable {
        package let bytes: [UInt8]
        /// Where the reader is behind it.
        package let end: Int
        /// How the stream stood; nil where there is more of it already.
        package let status: StreamStatus?
    }

    /// Bytes of a stream in one block, at most, but for a single message that is larger.
    private static let bytes = 262_144

    /// - Parameter offset: where a block ended, or one that `head` let pass.
    package static func block(of stream: StreamBuffer, from offset: Int, cursor: String) -> Block? {
        let snapshot = stream.snapshot
        guard let piece = StreamPiece(of: stream, in: snapshot, from: offset, most: Self.bytes) else { return nil }
        let status = piece.end == snapshot.end ? snapshot.status : nil
        return Block(
            bytes: block(piece.bytes, snapshot.configuration.content, upTo: piece.end, status, cursor: cursor),
            end: piece.end, status: status)
    }

    /// A line that a reader passes over, for connections on which nothing else is said.
    package static let comment = Array(":\n\n".utf8)

    /// One `data` event and its `control`, or the `control` alone where nothing is new.
    ///
    /// - Parameters:
    ///   - bytes: of the stream, cut where its content may be cut.
    ///   - end: where the next begins.
    ///   - status: of the stream, where that is its end; nil where there is more.
    ///   - cursor: as `CacheCursor` makes it; left out at the end of a stream.
    package static func block(
        _ bytes: [UInt8], _ content: StreamContent, upTo end: Int, _ status: StreamStatus?, cursor: String
    ) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count + bytes.count / 8 + 160)
        if !bytes.isEmpty { data(bytes, content, into: &out) }
        out += "event: control\ndata: {\"streamNextOffset\":\"".utf8
        out += StreamPosition.text(end).utf8
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

    private static func data(_ bytes: [UInt8], _ content: StreamContent, into out: inout [UInt8]) {
        out += "event: data\n".utf8
        switch content {
        case .binary:
            out += "data: ".utf8
            Base64.append(bytes, to: &out)
            out.append(UInt8(ascii: "\n"))
        case .json:
            line(CollectionOfOne(UInt8(ascii: "[")), into: &out)
            var rest = bytes[...]
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                out += "data: ".utf8
                out += rest[..<end]
                rest = rest[(end + 1)...]
                out += rest.isEmpty ? "\n".utf8 : ",\n".utf8
            }
            line(CollectionOfOne(UInt8(ascii: "]")), into: &out)
        case .text:
            // A carriage return ends a line of an event stream, too, and comes out as a line feed (WHATWG HTML, section 9.2.6).
            var rest = bytes[...]
            while let end = rest.firstIndex(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
                line(rest[..<end], into: &out)
                let isPair =
                    rest[end] == UInt8(ascii: "\r") && end + 1 < rest.endIndex && rest[end + 1] == UInt8(ascii: "\n")
                rest = rest[(end + (isPair ? 2 : 1))...]
            }
            line(rest, into: &out)
        }
        out.append(UInt8(ascii: "\n"))
    }

    private static func line(_ bytes: some Collection<UInt8>, into out: inout [UInt8]) {
        out += "data: ".utf8
        out += bytes
        out.append(UInt8(ascii: "\n"))
    }
}
