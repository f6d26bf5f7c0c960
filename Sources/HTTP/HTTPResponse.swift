import Wire

/// The response to an HTTP request.
package struct HTTPResponse: Sendable {
    package var status: UInt32
    package var contentType: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(
        status: UInt32, contentType: String = "", headers: [(name: String, value: String)] = [], body: [UInt8] = []
    ) {
        self.status = status
        self.contentType = contentType
        self.headers = headers
        self.body = body
    }

    package static func json(_ status: UInt32, _ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(status: status, contentType: "application/json", body: body)
    }

    package static func text(_ status: UInt32, _ body: String) -> HTTPResponse {
        HTTPResponse(status: status, contentType: "text/plain; charset=utf-8", body: Array(body.utf8))
    }

    /// An error of the hub itself, in one sentence.
    package static func error(_ status: UInt32, _ sentence: String) -> HTTPResponse {
        .json(status, Array("{\"error\":".utf8) + JSONString.encode(sentence) + [UInt8(ascii: "}")])
    }

    /// A temporary error.
    ///
    /// - Parameter seconds: how long clients should wait.
    package static func unavailable(_ sentence: String, retryAfter seconds: Int) -> HTTPResponse {
        var response = error(503, sentence)
        response.headers = [("retry-after", String(seconds))]
        return response
    }

    /// One sentence under `message`, as in the original's broadcast API.
    package static func message(_ status: UInt32, _ sentence: String) -> HTTPResponse {
        .json(status, Array("{\"message\":".utf8) + JSONString.encode(sentence) + [UInt8(ascii: "}")])
    }
}

extension HTTPResponse {
    /// The sentence of an error response.
    package var sentence: String {
        do {
            let json = try JSON(parsing: body)
            return json["message"]?.string ?? json["error"]?.string ?? "HTTP \(status)"
        } catch {
            return "HTTP \(status)"
        }
    }
}

// MARK: On the wire

extension HTTPResponse {
    /// Appends the response in its wire format (RFC 9112, section 4): head and body in one piece.
    ///
    /// - Parameters:
    ///   - leavingOutBody: for a response to HEAD, which states the length of the omitted body.
    ///   - closes: the connection ends after the response.
    package func write(into out: inout [UInt8], leavingOutBody: Bool, closes: Bool) {
        out.reserveCapacity(out.count + 256 + (leavingOutBody ? 0 : body.count))
        // These have no body (RFC 9110, section 8.6).
        let hasBody = status >= 200 && status != 204 && status != 304
        writeHead(into: &out, closes: closes) { out in
            if hasBody { Self.write("content-length", String(body.count), into: &out) }
        }
        if hasBody, !leavingOutBody { out += body }
    }

    /// Appends the head of a response whose body follows in pieces, for any length of time.
    ///
    /// - Parameter isChunked: false for HTTP/1.0, where the end of the connection ends the body.
    package func writeHead(into out: inout [UInt8], isChunked: Bool, closes: Bool) {
        writeHead(into: &out, closes: closes) { out in
            if isChunked { Self.write("transfer-encoding: chunked\r\n", into: &out) }
        }
    }

    private func writeHead(into out: inout [UInt8], closes: Bool, framing: (inout [UInt8]) -> Void) {
        if let statusLine { Self.write(statusLine, into: &out) } else { out += "HTTP/1.1 \(status) Answer\r\n".utf8 }
        if !contentType.isEmpty { Self.write("content-type", contentType, into: &out) }
        if !has("cache-control") { Self.write("cache-control: no-store\r\n", into: &out) }
        for (name, value) in headers { Self.write(name, value, into: &out) }
        // A 401 must say how to authenticate (RFC 9110, section 15.5.2).
        if status == 401, !has("www-authenticate") { Self.write("www-authenticate: Bearer\r\n", into: &out) }
        framing(&out)
        switch (closes, has("upgrade")) {
        case (true, true): Self.write("connection: close, upgrade\r\n", into: &out)
        case (true, false): Self.write("connection: close\r\n", into: &out)
        case (false, true): Self.write("connection: upgrade\r\n", into: &out)
        case (false, false): break
        }
        Self.write("\r\n", into: &out)
    }

    private static func write(_ name: String, _ value: String, into out: inout [UInt8]) {
        out += name.utf8
        Self.write(": ", into: &out)
        out += value.utf8
        Self.write("\r\n", into: &out)
    }

    private static func write(_ text: StaticString, into out: inout [UInt8]) {
        text.withUTF8Buffer { out.append(contentsOf: $0) }
    }

    private func has(_ name: String) -> Bool { headers.contains { $0.name == name } }

    /// The status line with the reason phrase of RFC 9110, section 15, or RFC 6585: some clients show nothing else of a
    /// response. Nil for any other status.
    private var statusLine: StaticString? {
        switch status {
        case 200: "HTTP/1.1 200 OK\r\n"
        case 201: "HTTP/1.1 201 Created\r\n"
        case 202: "HTTP/1.1 202 Accepted\r\n"
        case 204: "HTTP/1.1 204 No Content\r\n"
        case 302: "HTTP/1.1 302 Found\r\n"
        case 304: "HTTP/1.1 304 Not Modified\r\n"
        case 400: "HTTP/1.1 400 Bad Request\r\n"
        case 401: "HTTP/1.1 401 Unauthorized\r\n"
        case 403: "HTTP/1.1 403 Forbidden\r\n"
        case 404: "HTTP/1.1 404 Not Found\r\n"
        case 405: "HTTP/1.1 405 Method Not Allowed\r\n"
        case 408: "HTTP/1.1 408 Request Timeout\r\n"
        case 409: "HTTP/1.1 409 Conflict\r\n"
        case 410: "HTTP/1.1 410 Gone\r\n"
        case 411: "HTTP/1.1 411 Length Required\r\n"
        case 413: "HTTP/1.1 413 Content Too Large\r\n"
        case 414: "HTTP/1.1 414 URI Too Long\r\n"
        case 415: "HTTP/1.1 415 Unsupported Media Type\r\n"
        case 417: "HTTP/1.1 417 Expectation Failed\r\n"
        case 422: "HTTP/1.1 422 Unprocessable Content\r\n"
        case 426: "HTTP/1.1 426 Upgrade Required\r\n"
        case 429: "HTTP/1.1 429 Too Many Requests\r\n"
        case 431: "HTTP/1.1 431 Request Header Fields Too Large\r\n"
        case 500: "HTTP/1.1 500 Internal Server Error\r\n"
        case 501: "HTTP/1.1 501 Not Implemented\r\n"
        case 502: "HTTP/1.1 502 Bad Gateway\r\n"
        case 503: "HTTP/1.1 503 Service Unavailable\r\n"
        case 504: "HTTP/1.1 504 Gateway Timeout\r\n"
        case 505: "HTTP/1.1 505 HTTP Version Not Supported\r\n"
        default: nil
        }
    }
}
