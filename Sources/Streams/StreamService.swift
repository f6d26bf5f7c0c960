/// What keeps streams, as the loops see it. From any thread; must not wait.
package protocol StreamService: Sendable {
    /// Requests about one stream are performed in the order in which they came. The answer comes once, from another thread: what was
    /// appended is durable and visible to readers by then.
    func perform(
        _ request: StreamRequest, on name: StreamName, answer: @escaping @Sendable (StreamAnswer) -> Void)

    /// Several hubs have the streams together: what this one knows may be a moment old, and is all once a `touch` is answered.
    var isShared: Bool { get }

    /// Nil where there is no such stream.
    func buffer(of name: StreamName) -> StreamBuffer?

    /// The loop is told of every change of the stream of this name, and of a stream that is made with it, until it has said
    /// `unwatch` as often: `StreamSink.streamChanged`.
    ///
    /// - Returns: nil where there is no such stream yet.
    @discardableResult func watch(_ name: StreamName, by loop: Int) -> StreamBuffer?
    func unwatch(_ name: StreamName, by loop: Int)
}

/// Where loops are told that streams changed. From any thread; must not wait.
package protocol StreamSink: Sendable {
    /// The stream grew, ended, stalled, came back, or is gone: it may have done so several times since the last call. Not called again
    /// for this loop until `StreamBuffer.noteSeen` is.
    func streamChanged(_ stream: StreamBuffer, for loop: Int)
}
