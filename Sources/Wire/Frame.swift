/// A WebSocket frame (RFC 6455, section 5.2) ready for the socket: header and payload in one immutable buffer.
///
/// One frame is shared by every subscriber of a protocol version; nothing is copied per subscriber.
package struct Frame: Sendable, Equatable {
    package let bytes: [UInt8]

    package enum Opcode: UInt8, Sendable {
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
    }

    /// Builds a final, unmasked frame whose payload has `count` bytes; `fill` appends exactly those.
    package init(_ opcode: Opcode, count: Int, fill: (inout [UInt8]) -> Void) {
        var out: [UInt8] = []
        out.reserveCapacity(count + 10)
        out.append(0x80 | opcode.rawValue)
        switch count {
        case ..<126:
            out.append(UInt8(count))
        case ..<65_536:
            out.append(126)
            out.append(UInt8(count >> 8))
            out.append(UInt8(count & 255))
        default:
            out.append(127)
            for shift in stride(from: 56, through: 0, by: -8) { out.append(UInt8(truncatingIfNeeded: count >> shift)) }
        }
        fill(&out)
        bytes = out
    }

    package static let ping = Frame.ping("roost")

    /// - Parameter payload: comes back in the pong (RFC 6455, section 5.5.2); up to 125 bytes.
    package static func ping(_ payload: String) -> Frame {
        Frame(.ping, count: payload.utf8.count) { $0 += payload.utf8 }
    }

    /// A close frame (RFC 6455, section 5.5.1): the code, and a reason of at most 123 bytes for whoever debugs the client.
    package static func close(_ code: CloseCode, reason: StaticString) -> Frame {
        let text = UnsafeBufferPointer(start: reason.utf8Start, count: min(reason.utf8CodeUnitCount, 123))
        return Frame(.close, count: 2 + text.count) { out in
            out += [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 255)]
            out += text
        }
    }
}
