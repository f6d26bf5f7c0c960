/// One message of a WebSocket.
package enum WebSocketFrame: Sendable, Equatable {
    case text([UInt8])
    case binary([UInt8])

    /// Bytes.
    package var count: Int {
        switch self {
        case .text(let bytes), .binary(let bytes): bytes.count
        }
    }
}
