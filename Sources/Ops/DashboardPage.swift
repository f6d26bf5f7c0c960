import HTTP

/// The operator's page, as a browser gets it. There is no secret in it, so it needs no token; what feeds it does.
struct DashboardPage {
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml",
    ]
    private static let headers: [(name: String, value: String)] = [
        ("cache-control", "no-cache"), ("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        (
            "content-security-policy",
            "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
        ),
    ]

    /// Nil where there is no such file.
    static func response(at path: String) -> HTTPResponse? {
        let name = path == "/" ? "dashboard.html" : String(path.dropFirst())
        guard let bytes = OpsFiles.all[name], let type = types[String(name.split(separator: ".").last ?? "")] else {
            return nil
        }
        return HTTPResponse(status: 200, contentType: type, headers: headers, body: bytes)
    }
}
