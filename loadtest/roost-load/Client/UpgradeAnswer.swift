/// The server's HTTP answer to a request for a WebSocket.
enum UpgradeAnswer {
    case incomplete
    /// The offset behind it.
    case accepted(Int)
    case refused(String)

    private static let end = Needle("\r\n\r\n")
    private static let switching = Needle("HTTP/1.1 101")

    init(_ bytes: UnsafeRawBufferPointer) {
        guard let end = Self.end.end(in: bytes) else {
            self = .incomplete
            return
        }
        guard Self.switching.end(in: bytes) != 12 else {
            self = .accepted(end)
            return
        }
        let status = String(decoding: bytes.prefix { $0 != 13 }.dropFirst(9), as: UTF8.self)
        let body = String(decoding: bytes[end...].prefix(200), as: UTF8.self)
        self = .refused("refused with HTTP \(status)" + (body.isEmpty ? "" : ": \(body)"))
    }
}
