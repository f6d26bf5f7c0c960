import Synchronization

/// Mail from other threads to a worker's thread; posting never waits for the worker.
///
/// `Content` is defined by the owner: lists of work, limits, whether the box is closed. The worker sleeps on
/// `descriptor`, together with its other sockets. Thread-safe.
package final class WorkerMailbox<Content: Sendable>: Sendable {
    private struct State {
        var content: Content
        /// The worker has been woken since it last took mail.
        var isSignaled = false
    }

    private let state: Mutex<State>
    private let news = EventDescriptor()

    package init(_ content: Content) { state = Mutex(State(content: content)) }

    /// Readable while the worker has unseen mail.
    package var descriptor: Int32 { news.descriptor }

    /// Changes the content and wakes the worker. Of several posts before it takes its mail, only the first wakes it.
    package func post<Result: Sendable>(_ change: (inout Content) -> Result) -> Result {
        let (result, isFirst) = state.withLock { state in
            defer { state.isSignaled = true }
            return (change(&state.content), !state.isSignaled)
        }
        if isFirst { news.signal() }
        return result
    }

    /// For the worker: takes its work out of the content. Later posts wake it again.
    package func takeMail<Result: Sendable>(_ change: (inout Content) -> Result) -> Result {
        // Cleared first: a later post signals again, or is seen below.
        news.clear()
        return state.withLock { state in
            state.isSignaled = false
            return change(&state.content)
        }
    }

    /// Reads or changes the content without waking the worker.
    package func withContent<Result: Sendable>(_ body: (inout Content) -> Result) -> Result {
        state.withLock { body(&$0.content) }
    }

    /// For a worker without other descriptors to wait for.
    ///
    /// - Parameter deadline: nil to wait indefinitely.
    package func wait(until deadline: ContinuousClock.Instant?) { _ = news.wait(until: deadline) }
}
