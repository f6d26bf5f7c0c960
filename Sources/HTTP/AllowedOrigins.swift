/// The web pages that may talk to the hub (`http.origins`), by origin (RFC 6454). An empty list allows all.
///
/// Only browsers are obliged to name a page's origin, so this keeps pages out, not programs.
package struct AllowedOrigins: Sendable {
    private let exact: Set<String>
    /// The parts before and after the star of `https://*.example.com`.
    private let wildcards: [(start: String, end: String)]

    package init(_ words: [String] = []) {
        let words = words.map(Self.normalized)
        exact = Set(words.filter { !$0.contains("*") })
        wildcards = words.compactMap { word in
            word.firstIndex(of: "*").map { (String(word[..<$0]), String(word[word.index(after: $0)...])) }
        }
    }

    package var isEmpty: Bool { exact.isEmpty && wildcards.isEmpty }

    /// - Parameter origin: the header's value; nil if the client is not a page.
    package func allow(_ origin: String?) -> Bool {
        guard !isEmpty, let origin else { return true }
        let normal = Self.normalized(origin)
        return exact.contains(normal)
            || wildcards.contains { start, end in
                guard normal.count > start.count + end.count, normal.hasPrefix(start), normal.hasSuffix(end) else {
                    return false
                }
                return normal.dropFirst(start.count).dropLast(end.count).utf8.allSatisfy(Self.isHostByte)
            }
    }

    /// Whether to carry out a request: one that names no page, a listed page, or a page of the hub's own.
    package func admit(_ head: HTTPHead) -> Bool {
        guard !isEmpty, let origin = head.field("origin") else { return true }
        return allow(origin) || Self.isOwn(head)
    }

    /// Whether a page of the hub's own origin asks. The browser sets this header and pages cannot (Fetch Metadata,
    /// "Sec-Fetch-Site").
    package static func isOwn(_ head: HTTPHead) -> Bool { head.field("sec-fetch-site") == "same-origin" }

    /// The response to a request from a page that is not allowed.
    package static let refusal = HTTPResponse.error(
        403, "Pages of this origin are not allowed; http.origins names those that are")

    /// A browser writes scheme and host in lower case and omits the scheme's default port; people may not.
    private static func normalized(_ origin: String) -> String {
        let text = origin.lowercased()
        for (scheme, port) in [("https://", ":443"), ("http://", ":80")] where text.hasPrefix(scheme) {
            if text.hasSuffix(port) { return String(text.dropLast(port.count)) }
        }
        return text
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    // MARK: CORS

    /// Adapts a response for the page that asks (Fetch, section "CORS protocol"). Pages that may use the hub may read
    /// every error; otherwise a browser would show them neither status nor reason. Other responses name their own
    /// readers.
    ///
    /// - Parameter origin: the page's origin; nil if the client is not a page, or if the origin is unknown.
    package func readable(_ response: HTTPResponse, by origin: String?) -> HTTPResponse {
        narrow(response.status >= 400 ? response.readableAnywhere : response, to: origin)
    }

    /// Restricts a response that pages of any origin may read to the listed origins.
    private func narrow(_ response: HTTPResponse, to origin: String?) -> HTTPResponse {
        guard !isEmpty, let index = response.headers.firstIndex(where: { $0.name == HTTPResponse.originHeader }) else {
            return response
        }
        var response = response
        response.headers.remove(at: index)
        if let origin, allow(origin) { response.headers.append((HTTPResponse.originHeader, origin)) }
        // The same request from another page gets another response (Fetch, section "CORS protocol and HTTP caches").
        response.headers.append(("vary", "origin"))
        return response
    }
}

// MARK: Preflights

extension AllowedOrigins {
    /// The response to OPTIONS, by which a browser asks what a page of another origin may send. It allows the headers
    /// that the hub reads and whatever else the page asks for, because tracing tools add fields of their own to all of
    /// a page's requests (`traceparent`, `baggage`). Such fields are harmless, because the hub does not act on them.
    package func preflight(for head: HTTPHead) -> HTTPResponse {
        var allowed = Self.readHeaders
        if allow(head.field("origin")), let asked = head.field("access-control-request-headers") {
            for name in Self.names(in: asked) where !allowed.contains(name) { allowed.append(name) }
        }
        return HTTPResponse(
            status: 204,
            headers: [
                (HTTPResponse.originHeader, "*"),
                ("access-control-allow-methods", "GET, HEAD, PUT, POST, DELETE, OPTIONS"),
                ("access-control-allow-headers", allowed.joined(separator: ", ")),
                ("access-control-max-age", "86400"),
            ])
    }

    private static let readHeaders = [
        "authorization", "apikey", "content-type", "x-client-info", "x-api-key", "if-none-match", "last-event-id",
        "stream-closed", "stream-seq", "stream-ttl", "stream-expires-at", "stream-lease", "producer-id",
        "producer-epoch", "producer-seq",
    ]
    /// More than any page asks for.
    private static let (mostNames, mostBytes) = (64, 2048)

    /// Parses a comma-separated list of field names (RFC 9110, section 5.6.2). Empty if one of them is not a name, or
    /// there are too many.
    private static func names(in list: String) -> [String] {
        guard list.utf8.count <= mostBytes else { return [] }
        let names = list.split(separator: ",").map { part in
            var name = part.utf8.drop(while: HTTPByte.isBlank)
            while let last = name.last, HTTPByte.isBlank(last) { name.removeLast() }
            return String(Substring(name)).lowercased()
        }
        guard names.count <= mostNames, names.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(HTTPByte.isToken) }) else {
            return []
        }
        return names
    }
}

extension HTTPResponse {
    fileprivate static let originHeader = "access-control-allow-origin"

    /// The response, readable by pages of any origin: a token protects the API, not a cookie.
    package var readableAnywhere: HTTPResponse {
        guard !headers.contains(where: { $0.name == Self.originHeader }) else { return self }
        var response = self
        response.headers.append((Self.originHeader, "*"))
        return response
    }
}
