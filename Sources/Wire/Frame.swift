/// A WebSocket frame (RFC 6455, section 5.2) ready for the socket: header and payload in one immutable buffer. Or a
/// piece of a streaming HTTP response.
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

    /// - Parameter payload: returned in the pong (RFC 6455, section 5.5.2); up to 125 bytes.
    package static func ping(_ payload: String) -> Frame {
        Frame(.ping, count: payload.utf8.count) { $0 += payload.utf8 }
    }

    /// A close frame (RFC 6455, section 5.5.1): the code, and a reason of at most 123 bytes for people who debug the
    /// client.
    package static func close(_ code: CloseCode, reason: StaticString) -> Frame {
        let text = UnsafeBufferPointer(start: reason.utf8Start, count: min(reason.utf8CodeUnitCount, 123))
        return Frame(.close, count: 2 + text.count) { out in
            out += [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 255)]
            out += text
        }
    }
}

extension Frame {
    /// Wraps bytes as they are: the head of a response, or a piece of one that ends with the connection.
    package init(raw bytes: [UInt8]) { self.bytes = bytes }

    /// Makes a piece of a response's body.
    ///
    /// - Parameter isChunked: whether to make a chunk of HTTP/1.1, for a body of unknown length (RFC 9112, section
    ///   7.1).
    package init(body: [UInt8], isChunked: Bool) {
        guard isChunked else {
            bytes = body
            return
        }
        var out: [UInt8] = []
        out.reserveCapacity(body.count + 12)
        out += String(body.count, radix: 16).utf8
        out += "\r\n".utf8
        out += body
        out += "\r\n".utf8
        bytes = out
    }

    /// The end of a chunked body: without it, clients consider the response incomplete.
    package static let lastChunk = Frame(raw: Array("0\r\n\r\n".utf8))

    /// The kind of frame; nil for one that the hub does not make.
    package var opcode: Opcode? { Opcode(rawValue: bytes[0] & 0x0F) }

    /// The bytes after the header.
    package var payload: ArraySlice<UInt8> {
        switch bytes[1] {
        case 126: bytes[4...]
        case 127: bytes[10...]
        default: bytes[2...]
        }
    }
}

/// The WebSocket close codes the hub uses (RFC 6455, section 7.4.1, and the IANA registry).
///
/// All are below 4000: supabase-swift never comes back from a code of 4000 and above.
package enum CloseCode: UInt16, Sendable, CaseIterable {
    case normal = 1000
    case goingAway = 1001
    case protocolError = 1002
    case invalidData = 1007
    case messageTooBig = 1009
    case serviceRestart = 1012
    case tryAgainLater = 1013
}

/// The content of a peer's close frame (RFC 6455, section 5.5.1), and the answer to it.
package struct PeerClose: Sendable, Equatable {
    /// The code for the log and the metrics: 1005 stands for a frame without a code (section 7.1.5), 1002 for one that
    /// a peer must not send.
    package let code: UInt16
    /// The only frame that may follow: the peer's code, or the reason why its frame is invalid.
    package let answer: Frame

    /// - Parameter payload: of the close frame.
    package init(_ payload: some Collection<UInt8>) {
        guard let high = payload.first else {
            self.init(code: 1005, answer: Frame(.close, count: 0) { _ in })
            return
        }
        let rest = payload.dropFirst()
        guard let low = rest.first else {
            self.init(failing: .protocolError, "a close frame needs a code of two bytes")
            return
        }
        let code = UInt16(high) << 8 | UInt16(low)
        guard Self.isAllowed(code) else {
            self.init(failing: .protocolError, "this close code may not be sent")
            return
        }
        guard String(validating: rest.dropFirst(), as: UTF8.self) != nil else {
            self.init(failing: .invalidData, "the reason is not UTF-8")
            return
        }
        self.init(code: code, answer: Frame(.close, count: 2) { $0 += [high, low] })
    }

    private init(failing code: CloseCode, _ reason: StaticString) {
        self.init(code: code.rawValue, answer: .close(code, reason: reason))
    }

    private init(code: UInt16, answer: Frame) {
        self.code = code
        self.answer = answer
    }

    /// Whether RFC 6455 or IANA names the code; from 3000 on a peer may send any number.
    package static func isRegistered(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1005...1015: true
        default: false
        }
    }

    /// Whether a frame may carry the code: those of RFC 6455, section 7.4.2, and those registered with IANA since.
    /// 1004, 1005, 1006 and 1015 are never allowed.
    private static func isAllowed(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
