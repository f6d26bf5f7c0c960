/// The keeper of streams, as the loops see it. Thread-safe; must not wait.
package protocol StreamService: Sendable {
    /// Requests about one stream are performed in order of arrival. The answer comes once, from another thread:
    /// appended bytes are durable and visible to readers by then.
    func submitRequest(
        _ request: StreamRequest, on name: StreamName, answer: @escaping @Sendable (StreamAnswer) -> Void)

    /// Several hubs share the streams: this hub's knowledge may be a moment old, and is complete once a `touch` is answered.
    var isShared: Bool { get }

    /// Nil if there is no such stream.
    func buffer(of name: StreamName) -> StreamBuffer?

    /// Notifies the loop of every change of a stream with this name, including its creation, until the watch is removed
    /// as many times as it was added: `StreamSink.streamChanged`.
    ///
    /// - Returns: nil if there is no such stream yet.
    @discardableResult func watchStream(_ name: StreamName, by loop: Int) -> StreamBuffer?
    func unwatchStream(_ name: StreamName, by loop: Int)
}

/// Notifies loops of changes to streams. Thread-safe; must not wait.
package protocol StreamSink: Sendable {
    /// The stream grew, ended, stalled, resumed, or is gone, possibly several times since the last call. Not called
    /// again for this loop until it calls `StreamBuffer.noteSeen`.
    func streamChanged(_ stream: StreamBuffer, for loop: Int)
}
