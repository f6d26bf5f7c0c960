package import Wire

/// One frame that went over a connection while an operator looked at it.
package struct TraceEntry: Sendable {
    package let number: Int
    /// In milliseconds since 1970.
    package let at: Int64
    package let isOutgoing: Bool
    package let head: FrameHead
    /// Of an incoming message without its frame's header, of an outgoing frame with it.
    package let bytes: Int
    /// Bytes that waited for the socket then.
    package let queue: Int
}
