/// Why the other side ends a connection.
enum CloseFrame {
    static func sentence(_ payload: UnsafeRawBufferPointer) -> String {
        guard payload.count >= 2 else { return "closed by the server without a code" }
        let code = Int(payload[0]) << 8 | Int(payload[1])
        let reason = String(decoding: payload[2...].prefix(120), as: UTF8.self)
        return "closed by the server with \(code)" + (reason.isEmpty ? "" : " (\(reason))")
    }
}
