import HTTP
import Testing

/// A head as a client sends it.
private func head(_ target: String = "/", _ fields: String...) throws -> HTTPHead {
    var parser = HTTPHeadParser()
    let text = (["GET \(target) HTTP/1.1", "Host: roost"] + fields).joined(separator: "\r\n") + "\r\n\r\n"
    let progress = Array(text.utf8).withUnsafeBytes { parser.parse($0) }
    guard case .complete(let head, _) = progress else { throw NotAHead(text: text) }
    return head
}

private struct NotAHead: Error { let text: String }

/// Which web pages may use the hub, and what they are shown (`http.origins`).
@Suite struct AllowedOriginsTests {
    @Test func withoutAListAllPagesMay() {
        let origins = AllowedOrigins()
        #expect(origins.isEmpty)
        #expect(origins.allow("https://anybody.example"))
    }

    @Test(arguments: [
        ("https://app.example", true), ("https://APP.example:443", true), ("https://app.example:8443", false),
        ("http://app.example", false), ("https://a.b.web.example", true), ("https://web.example", false),
        ("https://evil/.web.example", false), ("null", false),
    ])
    func aListAllowsItsOriginsAndTheirHosts(origin: String, isAllowed: Bool) {
        let origins = AllowedOrigins(["https://app.example", "https://*.web.example"])
        #expect(origins.allow(origin) == isAllowed)
    }

    @Test func whatIsNoPageHasNoOrigin() {
        #expect(AllowedOrigins(["https://app.example"]).allow(nil))
    }

    /// A browser shows a page neither status nor reason of an answer that the page may not read.
    @Test func errorsMayBeReadByThePagesThatMayUseTheHub() {
        let origins = AllowedOrigins(["https://app.example"])
        let error = HTTPResponse.error(404, "Nothing is served here")
        #expect(header(origins.readable(error, by: "https://app.example")) == "https://app.example")
        #expect(header(origins.readable(error, by: "https://other.example")) == nil)
        #expect(header(AllowedOrigins().readable(error, by: "https://other.example")) == "*")
        #expect(header(origins.readable(.text(200, "ok"), by: "https://app.example")) == nil)
    }

    @Test(arguments: [
        (nil, "cross-site", true), ("https://app.example", "cross-site", true),
        ("https://hub.example", "same-origin", true), ("https://hub.example", "same-site", false),
        ("https://other.example", "none", false), ("null", "cross-site", false),
    ])
    func pagesOfTheListAndOfTheHubsOwnOriginAreHeard(origin: String?, site: String, isHeard: Bool) throws {
        let head = try request("Sec-Fetch-Site: " + site + (origin.map { "\r\nOrigin: " + $0 } ?? ""))
        #expect(AllowedOrigins(["https://app.example"]).admit(head) == isHeard)
        #expect(AllowedOrigins().admit(head))
    }

    @Test(arguments: [
        ("traceparent, baggage,\tX-Request-ID", "traceparent, baggage, x-request-id"),
        ("apikey,sentry-trace", "sentry-trace"), ("traceparent,not a name", nil), ("traceparent,,", "traceparent"),
        ("a:b", nil), ("\"a\"", nil),
        (String(repeating: "a", count: 2049), nil), (Array(repeating: "a,", count: 65).joined(), nil),
    ])
    func aPreflightAllowsWhatThePageAsksFor(asked: String, added: String?) throws {
        let head = try request("Origin: https://app.example\r\nAccess-Control-Request-Headers: " + asked)
        let fixed = try #require(allowedHeaders(AllowedOrigins().preflight(for: try request("Origin: null"))))
        #expect(fixed.hasPrefix("authorization, ") && fixed.hasSuffix("producer-seq"))
        let expected = fixed + (added.map { ", " + $0 } ?? "")
        #expect(allowedHeaders(AllowedOrigins().preflight(for: head)) == expected)
        #expect(allowedHeaders(AllowedOrigins(["https://app.example"]).preflight(for: head)) == expected)
        #expect(allowedHeaders(AllowedOrigins(["https://other.example"]).preflight(for: head)) == fixed)
    }

    private func request(_ fields: String) throws -> HTTPHead { try head("/", fields) }

    private func allowedHeaders(_ response: HTTPResponse) -> String? {
        response.headers.first { $0.name == "access-control-allow-headers" }?.value
    }

    private func header(_ response: HTTPResponse) -> String? {
        response.headers.first { $0.name == "access-control-allow-origin" }?.value
    }
}

/// Which of the tokens that a request brings counts.
@Suite struct TokenSourceTests {
    @Test func anAuthorizationHeaderComesBeforeTheProjectsKey() throws {
        let head = try head("/?apikey=project", "Authorization: bearer user")
        let tokens = TokenSource(head: head).ofUpgrade
        #expect(tokens?.token == "user")
        #expect(tokens?.insteadOfExpired == "project")
        #expect(HTTPRequest(head).token == "user")
    }

    @Test func anOpaqueKeyIsNoToken() throws {
        let head = try head("/?token=user", "apikey: sb_publishable_x")
        #expect(TokenSource(head: head).ofUpgrade?.token == "user")
        #expect(HTTPRequest(head).token == "user")
    }

    @Test func anOpaqueKeyAloneIsLookedAtAllTheSame() throws {
        #expect(TokenSource(head: try head("/", "x-api-key: sb_secret_x")).ofUpgrade?.token == "sb_secret_x")
    }

    @Test(arguments: [
        ("a=b; t=abc; c=d", "abc"), ("t=abc==", "abc=="), ("t=1; t=2", "1"), ("T=1", nil), ("t", nil), ("t=", nil),
        ("=t", nil),
        ("tt=1; t =2", nil), ("", nil),
        // Marks that combine with what separates.
        ("a=b;\u{301}t=1", nil), ("a=b\u{301}; t=1", "1"), ("t=\u{301}1", "\u{301}1"),
    ])
    func aCookieIsReadByBytes(cookies: String, value: String?) throws {
        let found = try head("/", "Cookie: " + cookies).cookie("t")
        #expect(found.map { Array($0.utf8) } == value.map { Array($0.utf8) })
    }

    @Test func whoBringsNothingHasNone() throws {
        #expect(TokenSource(head: try head()).ofUpgrade?.token == nil)
        #expect(HTTPRequest(try head()).token == nil)
    }
}

/// The opening handshake of a WebSocket (RFC 6455, section 4.2).
@Suite struct WebSocketHandshakeTests {
    private static let complete = [
        "Upgrade: websocket", "Connection: keep-alive, Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]

    private func refusal(replacing name: String, by field: String? = nil) throws -> HTTPResponse? {
        let fields = Self.complete.filter { !$0.hasPrefix(name + ":") } + (field.map { [$0] } ?? [])
        return WebSocketHandshake.refusal(of: try request(fields))
    }

    private func request(_ fields: [String]) throws -> HTTPHead {
        try head("/", fields.joined(separator: "\r\n"))
    }

    @Test func aCompleteOneIsNotRefused() throws {
        let head = try request(Self.complete)
        #expect(WebSocketHandshake.isAsked(by: head))
        #expect(WebSocketHandshake.refusal(of: head)?.status == nil)
    }

    @Test(
        arguments: [
            ("Upgrade", nil, 400), ("Connection", "Connection: close", 400), ("Sec-WebSocket-Key", nil, 400),
            ("Sec-WebSocket-Key", "Sec-WebSocket-Key: short==", 400), ("Sec-WebSocket-Version", nil, 426),
            ("Sec-WebSocket-Version", "Sec-WebSocket-Version: 8", 426), ("Content-Length", "Content-Length: 1", 400),
        ] as [(String, String?, UInt32)])
    func eachPartIsNeeded(name: String, field: String?, status: UInt32) throws {
        #expect(try refusal(replacing: name, by: field)?.status == status)
    }

    @Test func whatLwsIsToldHoldsTheKeyAndNothingElseOfTheClients() throws {
        let bytes = WebSocketHandshake.canonicalHead(key: "dGhlIHNhbXBsZSBub25jZQ==")
        var parser = HTTPHeadParser()
        guard case .complete(let head, let length) = bytes.withUnsafeBytes({ parser.parse($0) }) else {
            Issue.record("the head is not complete")
            return
        }
        #expect(length == bytes.count)
        #expect(WebSocketHandshake.refusal(of: head)?.status == nil)
    }
}

/// What the log says of a request's tracing.
@Suite struct TraceContextTests {
    private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test func bothAreRead() throws {
        let context = try #require(
            TraceContext(head("/", "traceparent: \(Self.parent)", "baggage: user=7, sb-request-id=a1-B_2;ttl=3")))
        #expect(context.facts.map(\.name) == ["traceparent", "request_id"])
        #expect(context.facts.map(\.value) == [Self.parent, "a1-B_2"])
    }

    @Test func aGatewaySaysItByItself() throws {
        #expect(try TraceContext(head("/", "sb-request-id: 7f"))?.requestID == "7f")
    }

    @Test(arguments: [
        "traceparent: \(parent.uppercased())", "traceparent: ff\(parent.dropFirst(2))", "traceparent: \(parent)0",
        "traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01", "traceparent: x",
        "baggage: sb-request-id",
        "baggage: sb-request-id=a/b", "sb-request-id: \(String(repeating: "a", count: 65))", "sb-request-id: ",
    ])
    func whatHasNotTheFormIsLeftOut(_ field: String) throws {
        #expect(try TraceContext(head("/", field)) == nil)
    }
}
