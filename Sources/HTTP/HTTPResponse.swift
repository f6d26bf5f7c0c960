import Wire

/// What is sent back to an HTTP request.
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

    /// One sentence under `message`, as the original words the errors of its broadcast API.
    package static func message(_ status: UInt32, _ sentence: String) -> HTTPResponse {
        .json(status, Array("{\"message\":".utf8) + JSONString.encode(sentence) + [UInt8(ascii: "}")])
    }
}

// MARK: On the wire

extension HTTPResponse {
    /// Appends the answer as it goes over the wire (RFC 9112, section 4): head and body in one piece.
    ///
    /// - Parameters:
    ///   - leavingOutBody: it answers a HEAD, and says the length of what is left out.
    ///   - closes: the connection ends behind it.
    package func write(into out: inout [UInt8], leavingOutBody: Bool, closes: Bool) {
        out.reserveCapacity(out.count + 256 + (leavingOutBody ? 0 : body.count))
        Self.write("HTTP/1.1 ", into: &out)
        out += String(status).utf8
        out.append(UInt8(ascii: " "))
        Self.write(Self.reason(status), into: &out)
        Self.write("\r\n", into: &out)
        if !contentType.isEmpty { Self.write("content-type", contentType, into: &out) }
        if !has("cache-control") { Self.write("cache-control", "no-store", into: &out) }
        for (name, value) in headers { Self.write(name, value, into: &out) }
        // RFC 9110, section 15.5.2: a 401 says how to authenticate.
        if status == 401, !has("www-authenticate") { Self.write("www-authenticate", "Bearer", into: &out) }
        // RFC 9110, section 8.6: these have none.
        let hasBody = status >= 200 && status != 204 && status != 304
        if hasBody { Self.write("content-length", String(body.count), into: &out) }
        switch (closes, has("upgrade")) {
        case (true, true): Self.write("connection", "close, upgrade", into: &out)
        case (true, false): Self.write("connection", "close", into: &out)
        case (false, true): Self.write("connection", "upgrade", into: &out)
        case (false, false): break
        }
        Self.write("\r\n", into: &out)
        if hasBody, !leavingOutBody { out += body }
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

    /// RFC 9110, section 15, and RFC 6585. Some clients show nothing else of an answer.
    private static func reason(_ status: UInt32) -> StaticString {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 302: "Found"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 411: "Length Required"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Answer"
        }
    }
}
