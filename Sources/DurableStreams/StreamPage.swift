package import HTTP
package import Streams

/// The result of a GET: an answer, or nothing yet.
package enum StreamPage: Sendable {
    case answered(HTTPResponse)
    /// A long-poll at the end of an open stream: asked again when the stream changes, or `timedOut` after a while.
    case waits(at: Int)

    /// The most bytes of a stream in one answer, except for a single larger message.
    package static let bytes = 1_048_576

    /// - Parameters:
    ///   - from: where to begin; a long-poll that waited begins where it waited.
    ///   - cursor: makes the `Stream-Cursor` for a live reader.
    package init(of stream: StreamBuffer, _ reading: StreamReading, from: Int? = nil, cursor: () -> String) {
        let snapshot = stream.snapshot
        guard let start = from ?? reading.position.offset(in: snapshot) else {
            self = .answered(Self.superseded(by: snapshot))
            return
        }
        guard let piece = StreamPiece(of: stream, in: snapshot, from: start, most: Self.bytes) else {
            self = .answered(Self.complaint(about: start, in: snapshot))
            return
        }
        let isUpToDate = piece.end == snapshot.end
        let place = StreamResponse.placeFields(piece.end, in: snapshot, isUpToDate: isUpToDate)
        if reading.mode == .longPoll, piece.isEmpty {
            guard snapshot.status.ending != nil else {
                self = .waits(at: start)
                return
            }
            self = .answered(HTTPResponse(status: 204, headers: StreamResponse.security + place))
            return
        }
        var headers = StreamResponse.security(for: snapshot.configuration) + place
        if reading.mode == .longPoll { headers.append(("stream-cursor", cursor())) }
        guard reading.position != .end || reading.mode != .page else {
            self = .answered(
                HTTPResponse(
                    status: 200, contentType: snapshot.configuration.contentType,
                    headers: headers + [("cache-control", "no-store")], body: piece.body))
            return
        }
        let tag = Self.entityTag(snapshot, start, piece.end, isUpToDate: isUpToDate)
        // A full page never changes; a page at the end does, and must be revalidated.
        headers += [("etag", tag), ("cache-control", isUpToDate ? "private, no-cache" : "private, max-age=60")]
        let isKnown = reading.known.map { Self.list($0, has: tag) } ?? false
        self = .answered(
            isKnown
                ? HTTPResponse(status: 304, headers: headers)
                : HTTPResponse(
                    status: 200, contentType: snapshot.configuration.contentType, headers: headers, body: piece.body))
    }

    /// The answer to a reader of a generation that has been replaced.
    static func superseded(by snapshot: StreamSnapshot) -> HTTPResponse {
        StreamResponse.makeError(
            410, "This offset is of a stream that has given way to another of its name: read that from its start",
            [("stream-generation", snapshot.id.text)])
    }

    static func complaint(about offset: Int, in snapshot: StreamSnapshot) -> HTTPResponse {
        offset > snapshot.end || offset < snapshot.start
            ? StreamResponse.makeError(410, "This stream has no such offset any more: read it from its start")
            : StreamResponse.makeError(400, "This offset was never given out")
    }

    /// The answer to a long-poll that timed out.
    package static func timedOut(_ snapshot: StreamSnapshot, at offset: Int, cursor: String) -> HTTPResponse {
        HTTPResponse(
            status: 204,
            headers: StreamResponse.security + StreamResponse.placeFields(offset, in: snapshot, isUpToDate: true)
                + [("stream-cursor", cursor)])
    }

    /// Changes once a stream has ended, so that no reader gets `304` instead of the end (section 10.1).
    private static func entityTag(_ snapshot: StreamSnapshot, _ start: Int, _ end: Int, isUpToDate: Bool) -> String {
        let ended = isUpToDate && snapshot.status.ending != nil ? ":c" : ""
        return "\"\(String(snapshot.id.number, radix: 36)):\(start):\(end)\(ended)\""
    }

    /// RFC 9110, section 13.1.2: weak comparison.
    private static func list(_ known: String, has tag: String) -> Bool {
        known.split(separator: ",").contains { entry in
            var entry = entry.drop { $0 == " " }
            if entry.hasPrefix("W/") { entry = entry.dropFirst(2) }
            return entry == "*" || entry.prefix { $0 != " " } == tag
        }
    }
}
