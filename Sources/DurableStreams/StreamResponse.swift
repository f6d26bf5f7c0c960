package import HTTP
package import Streams

/// Builds the response to a finished request (Durable Streams, section 5).
package enum StreamResponse {
    /// Headers of every answer: its type is not guessed, it does not have the hub's origin when opened in a browser
    /// (CSP 3, section 6.3), and pages of other origins may read it if the hub allows them (section 12.7).
    static let security: [(name: String, value: String)] = [
        ("x-content-type-options", "nosniff"), ("content-security-policy", "default-src 'none'; sandbox"),
        ("cross-origin-resource-policy", "cross-origin"),
        (
            "access-control-expose-headers",
            """
            stream-next-offset, stream-generation, stream-up-to-date, stream-closed, stream-cursor, stream-status, stream-cancelled, stream-ttl, \
            stream-expires-at, stream-sse-data-encoding, producer-epoch, producer-seq, producer-expected-seq, \
            producer-received-seq, etag, location
            """
        ),
    ]

    /// Headers of every answer of the stream's own type, which a client chose: content that a browser might run or draw
    /// is downloaded instead of opened (RFC 6266).
    static func security(for configuration: StreamConfiguration) -> [(name: String, value: String)] {
        configuration.isShownAsItIs ? security : security + [("content-disposition", "attachment")]
    }

    static func makeError(_ status: UInt32, _ sentence: String, _ headers: [(name: String, value: String)] = [])
        -> HTTPResponse
    {
        var response = HTTPResponse.error(status, sentence)
        response.headers = security + headers
        return response
    }

    /// The fields of an answer that describe the stream's state.
    static func placeFields(_ offset: Int, in snapshot: StreamSnapshot, isUpToDate: Bool) -> [(
        name: String, value: String
    )] {
        var fields = [
            (name: "stream-next-offset", value: StreamPosition.offsetText(offset, of: snapshot.id)),
            ("stream-generation", snapshot.id.text),
        ]
        if isUpToDate { fields.append(("stream-up-to-date", "true")) }
        guard isUpToDate else { return fields }
        switch snapshot.status {
        case .open: break
        case .stalled: fields.append(("stream-status", "stalled"))
        case .ended(let ending):
            fields += [("stream-closed", "true"), ("stream-status", ending.reason.rawValue)]
            if ending.reason == .cancelled { fields.append(("stream-cancelled", "true")) }
        }
        return fields
    }

    private static func endFields(_ snapshot: StreamSnapshot) -> [(name: String, value: String)] {
        placeFields(snapshot.end, in: snapshot, isUpToDate: true).filter { $0.name != "stream-up-to-date" }
    }

    // MARK: Results

    /// - Parameter url: the stream's address, for `Location`.
    package static func makeResponse(_ answer: StreamAnswer, to call: StreamCall, url: String) -> HTTPResponse {
        switch answer {
        case .created(let snapshot): makeCreated(201, snapshot, [("location", url)])
        case .existed(let snapshot): makeCreated(200, snapshot)
        case .appended(let snapshot, let isRepeated, let stamp):
            HTTPResponse(
                status: stamp == nil || isRepeated ? 204 : 200,
                headers: security + endFields(snapshot)
                    + (stamp.map { [("producer-epoch", String($0.epoch)), ("producer-seq", String($0.sequence))] } ?? [])
            )
        case .done(let snapshot):
            HTTPResponse(
                status: call.right == .cancel ? 200 : 204, headers: security + (snapshot.map { endFields($0) } ?? []))
        case .refused(let refusal): self.refusalResponse(refusal)
        }
    }

    private static func makeCreated(
        _ status: UInt32, _ snapshot: StreamSnapshot, _ more: [(name: String, value: String)] = []
    ) -> HTTPResponse {
        HTTPResponse(
            status: status, contentType: snapshot.configuration.contentType,
            headers: security(for: snapshot.configuration) + endFields(snapshot) + more)
    }

    package static func refusalResponse(_ refusal: StreamRefusal) -> HTTPResponse {
        switch refusal {
        case .notFound: makeError(404, "There is no such stream")
        case .gone: makeError(410, "This stream is gone")
        case .otherConfiguration:
            makeError(
                409, "A stream of this name exists with other properties: its content type, lifetime or end differs")
        case .ended(let snapshot): makeError(409, "This stream has ended", endFields(snapshot))
        case .otherGeneration(let snapshot):
            makeError(
                409, "This name has another stream by now than the one of your Stream-Generation",
                [("stream-generation", snapshot.id.text)])
        case .contentType(let expected): makeError(409, "This stream is \(expected): send that as Content-Type")
        case .emptyBody: makeError(400, "The body is empty: send what is to be appended, or Stream-Closed: true")
        case .notJSON: makeError(400, "The body is not valid JSON")
        case .emptyArray: makeError(400, "The body is an array without messages: send at least one")
        case .notUTF8: makeError(400, "The body is not valid UTF-8, as a stream of text has to be")
        case .staleEpoch(let current):
            makeError(
                403, "Another incarnation of this producer has taken over: begin a new epoch to go on",
                [("producer-epoch", String(current))])
        case .epochMustBeginAtZero: makeError(400, "A new epoch begins with Producer-Seq: 0")
        case .epochTooFar(let most):
            makeError(400, "Producer-Epoch may be \(most) now: begin the one behind this producer's last")
        case .sequenceGap(let expected, let received):
            makeError(
                409, "Producer-Seq \(expected) is missing: send it before \(received)",
                [("producer-expected-seq", String(expected)), ("producer-received-seq", String(received))])
        case .sequenceRegression: makeError(409, "Stream-Seq has to be greater than that of the append before")
        case .streamTooLarge(let limit): makeError(413, "A stream may have \(limit) bytes (streams.bytes)")
        case .tooManyProducers:
            makeError(409, "This stream has as many producers as it may: go on with the id of one of them")
        case .tooMuch(let limit):
            makeError(503, "The hub keeps no more streams now (\(limit)); try again later", [("retry-after", "10")])
        case .overShare(let limit):
            makeError(
                429, "The streams of one user may not take more (\(limit)); end or delete some, or try again later",
                [("retry-after", "10")])
        case .noRoom:
            makeError(
                503, "The hub cannot write to its disk, and appended nothing; try again later", [("retry-after", "5")])
        case .closeFailed(let sentence):
            makeError(422, "The stream is still open, because the statement of streams.on_close failed: \(sentence)")
        case .unavailable: makeError(503, "Streams cannot be served now; try again in a moment", [("retry-after", "1")])
        }
    }

    // MARK: Metadata

    /// The answer to HEAD.
    package static func describeStream(_ snapshot: StreamSnapshot) -> HTTPResponse {
        var headers = security(for: snapshot.configuration) + endFields(snapshot) + [("cache-control", "no-store")]
        switch snapshot.configuration.lifetime {
        case .unlimited: break
        case .idle(let seconds): headers.append(("stream-ttl", String(seconds)))
        case .until(let time): headers.append(("stream-expires-at", Timestamp(milliseconds: time).text))
        }
        return HTTPResponse(status: 200, contentType: snapshot.configuration.contentType, headers: headers)
    }
}
