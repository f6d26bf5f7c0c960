import CLoad

/// A client's WebSocket frame, masked as RFC 6455 wants it.
///
/// The mask is the same for all: it protects proxies from hostile pages, and there is neither here.
enum OutgoingFrame {
    enum Kind: UInt8 {
        case text = 0x81
        case binary = 0x82
        case close = 0x88
        case pong = 0x8A
    }
    private static let key: [UInt8] = [0x5A, 0x11, 0xC3, 0x2D]

    /// Code 1000, and no reason.
    static let goodbye = make(.close, [0x03, 0xE8])

    static func make(_ kind: Kind, _ payload: some Collection<UInt8>) -> [UInt8] {
        let count = payload.count
        var frame: [UInt8] = [kind.rawValue]
        frame.reserveCapacity(count + 14)
        if count < 126 {
            frame.append(0x80 | UInt8(count))
        } else if count < 65_536 {
            frame += [0x80 | 126, UInt8(count >> 8), UInt8(count & 255)]
        } else {
            frame.append(0x80 | 127)
            frame += (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
        }
        frame += key
        for (index, byte) in payload.enumerated() { frame.append(byte ^ key[index & 3]) }
        return frame
    }
}

/// The head of a server's frame, and where its payload lies.
struct IncomingFrame {
    let opcode: UInt8
    let isFinal: Bool
    let payload: Range<Int>

    /// Reads the frame that starts at `start`; nil while it is incomplete.
    init?(in bytes: UnsafeRawBufferPointer, at start: Int) {
        let available = bytes.count - start
        guard available >= 2 else { return nil }
        var length = Int(bytes[start + 1] & 127)
        var head = 2
        if length == 126 {
            guard available >= 4 else { return nil }
            length = Int(bytes[start + 2]) << 8 | Int(bytes[start + 3])
            head = 4
        } else if length == 127 {
            guard available >= 10 else { return nil }
            length = (2..<10).reduce(0) { $0 << 8 | Int(bytes[start + $1]) }
            head = 10
        }
        guard available - head >= length else { return nil }
        opcode = bytes[start] & 15
        isFinal = bytes[start] & 0x80 != 0
        payload = (start + head)..<(start + head + length)
    }
}

/// Why the other side ends a connection.
enum CloseFrame {
    static func sentence(_ payload: UnsafeRawBufferPointer) -> String {
        guard payload.count >= 2 else { return "closed by the server without a code" }
        let code = Int(payload[0]) << 8 | Int(payload[1])
        let reason = String(decoding: payload[2...].prefix(120), as: UTF8.self)
        return "closed by the server with \(code)" + (reason.isEmpty ? "" : " (\(reason))")
    }
}

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

/// A text that is looked for in frames. Frames are scanned, never parsed: the tester has to be cheaper than the hub.
struct Needle: Sendable {
    private let bytes: [UInt8]

    init(_ text: String) { bytes = Array(text.utf8) }

    /// The offset behind the first occurrence that begins at `offset` or later.
    @inline(__always)
    func end(in frame: UnsafeRawBufferPointer, from offset: Int = 0) -> Int? {
        guard let start = frame.baseAddress, let hit = memmem(start + offset, frame.count - offset, bytes, bytes.count)
        else { return nil }
        return UnsafeRawPointer(hit) - start + bytes.count
    }

    func occurs(in frame: UnsafeRawBufferPointer) -> Bool { end(in: frame) != nil }
}
