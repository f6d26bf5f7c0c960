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
