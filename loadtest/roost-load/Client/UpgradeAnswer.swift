/// The hub's HTTP answer to a request for a WebSocket.
enum UpgradeAnswer {
    private static let end = Needle("\r\n\r\n")
    private static let accepted = Needle("HTTP/1.1 101")

    /// The offset behind it; nil while it is incomplete.
    static func end(in bytes: UnsafeRawBufferPointer) throws -> Int? {
        guard let end = end.end(in: bytes) else { return nil }
        guard accepted.end(in: bytes) == 12 else {
            let status = String(decoding: bytes.prefix { $0 != 13 }, as: UTF8.self)
            let body = String(decoding: bytes[end...], as: UTF8.self)
            throw LoadFailure("The hub refused a WebSocket: \(status) \(body)")
        }
        return end
    }
}
