import Gateway

/// The chat page's files, embedded in the binary.
struct DemoPages {
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml",
    ]
    private static let headers: [(name: String, value: String)] = [
        ("cache-control", "no-cache"), ("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"),
        (
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ]

    /// Nil where there is no such file. `name` is what follows `/demo/`.
    func response(for name: Substring) -> HTTPResponse? {
        let name = name.isEmpty ? "index.html" : String(name)
        guard let bytes = DemoFiles.all[name], let type = Self.types[String(name.split(separator: ".").last ?? "")]
        else { return nil }
        return HTTPResponse(status: 200, contentType: type, headers: Self.headers, body: bytes)
    }
}
