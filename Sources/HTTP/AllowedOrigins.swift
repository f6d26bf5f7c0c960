/// The web pages that may talk to the hub (`http.origins`), by their origin (RFC 6454); empty: all.
///
/// Browsers say where a page is from and nothing else has to, so this keeps pages out and not programs.
package struct AllowedOrigins: Sendable {
    private let exact: Set<String>
    /// `https://*.example.com`: what is before the star, and what is behind it.
    private let wildcards: [(start: String, end: String)]

    package init(_ words: [String] = []) {
        let words = words.map(Self.normalized)
        exact = Set(words.filter { !$0.contains("*") })
        wildcards = words.compactMap { word in
            word.firstIndex(of: "*").map { (String(word[..<$0]), String(word[word.index(after: $0)...])) }
        }
    }

    package var isEmpty: Bool { exact.isEmpty && wildcards.isEmpty }

    /// - Parameter origin: as the header has it; nil for what is no page.
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

    /// Whether a request may be carried out: one of no page, of a page in the list, or of a page of the hub's own.
    package func admit(_ head: HTTPHead) -> Bool {
        guard !isEmpty, let origin = head.field("origin") else { return true }
        return allow(origin) || Self.isOwn(head)
    }

    /// Whether a page of the hub's own origin asks: its browser says so, and no page can (Fetch Metadata, "Sec-Fetch-Site").
    package static func isOwn(_ head: HTTPHead) -> Bool { head.field("sec-fetch-site") == "same-origin" }

    /// The answer to a request that may not be carried out.
    package static let refusal = HTTPResponse.error(
        403, "Pages of this origin are not allowed; http.origins names those that are")

    /// A browser writes the scheme and the host in lower case and leaves the scheme's own port out; people may not.
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

    /// An answer as the page gets it that asks (Fetch, section "CORS protocol"). Every error may be read by the pages that
    /// may use the hub: without that a browser shows them no status and no reason. What is no error says itself who may
    /// read it.
    ///
    /// - Parameter origin: of the page; nil for what is no page, and where nobody knows.
    package func readable(_ response: HTTPResponse, by origin: String?) -> HTTPResponse {
        narrow(response.status >= 400 ? response.readableAnywhere : response, to: origin)
    }

    /// An answer that pages of any origin may read, made one that only those in the list may.
    private func narrow(_ response: HTTPResponse, to origin: String?) -> HTTPResponse {
        guard !isEmpty, let index = response.headers.firstIndex(where: { $0.name == HTTPResponse.originHeader }) else {
            return response
        }
        var response = response
        response.headers.remove(at: index)
        if let origin, allow(origin) { response.headers.append((HTTPResponse.originHeader, origin)) }
        // The same request of another page has another answer (Fetch, section "CORS protocol and HTTP caches").
        response.headers.append(("vary", "origin"))
        return response
    }
}

// MARK: Preflights

extension AllowedOrigins {
    /// The answer to OPTIONS, by which a browser asks what a page of another origin may send: besides what the hub reads whatever
    /// the page asks for, because what traces requests adds fields of its own to all of a page's (`traceparent`, `baggage`). The hub
    /// reads none of those, so there is nothing that they could do.
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

    /// Names of fields with commas between them (RFC 9110, section 5.6.2); none where one of them is no name, or they are too many.
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

    /// The answer for pages of any origin: what protects the API is the token, not a cookie.
    package var readableAnywhere: HTTPResponse {
        guard !headers.contains(where: { $0.name == Self.originHeader }) else { return self }
        var response = self
        response.headers.append((Self.originHeader, "*"))
        return response
    }
}
