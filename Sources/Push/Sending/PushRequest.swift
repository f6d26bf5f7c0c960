/// A POST over HTTP/2, as a dialect writes it.
struct PushRequest: Sendable {
    var headers: RequestHeaders
    var body: [UInt8]
    /// Whether `:path` and `authorization` are put into HPACK's table: if they are the same in most requests, they need not be sent in
    /// full each time.
    var indexesAll = false
}

/// The headers of a request for `roost_http2_post`: names and values, each followed by a NUL. `:path` is one of them.
struct RequestHeaders: Sendable {
    private(set) var bytes: [UInt8] = []

    init() { bytes.reserveCapacity(640) }

    /// - Parameter value: contains no NUL and no line break.
    mutating func add(_ name: StaticString, _ value: String) {
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(0)
        bytes.append(contentsOf: value.utf8)
        bytes.append(0)
    }
}

extension RequestHeaders {
    /// Whether a text can be the value of a header: it contains nothing that could end one header and begin another.
    static func fit(_ value: String) -> Bool {
        !value.isEmpty && value.utf8.count <= 256 && value.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
