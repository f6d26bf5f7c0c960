import Synchronization

/// What other threads leave for a worker's thread; posting never waits for it.
///
/// `Content` is the user's own: lists of what is to be done, how much of it may wait, whether the box is closed. The worker sleeps on
/// `descriptor`, beside its other sockets. From any thread.
package final class WorkerMailbox<Content: Sendable>: Sendable {
    private struct State {
        var content: Content
        /// Since the worker last looked, somebody has woken it.
        var isSignaled = false
    }

    private let state: Mutex<State>
    private let news = EventDescriptor()

    package init(_ content: Content) { state = Mutex(State(content: content)) }

    /// Readable while there is something that the worker has not looked at.
    package var descriptor: Int32 { news.descriptor }

    /// Changes the content and wakes the worker. Of those who post before it looks, the first one wakes it for all.
    package func post<Result: Sendable>(_ change: (inout Content) -> Result) -> Result {
        let (result, isFirst) = state.withLock { state in
            defer { state.isSignaled = true }
            return (change(&state.content), !state.isSignaled)
        }
        if isFirst { news.signal() }
        return result
    }

    /// For the worker: takes out of the content what is to be done. Whatever is posted from now on wakes it again.
    package func take<Result: Sendable>(_ change: (inout Content) -> Result) -> Result {
        // First: what is posted after this signals anew, or is seen below.
        news.clear()
        return state.withLock { state in
            state.isSignaled = false
            return change(&state.content)
        }
    }

    /// Looks at the content or changes it, and wakes nobody.
    package func look<Result: Sendable>(_ body: (inout Content) -> Result) -> Result {
        state.withLock { body(&$0.content) }
    }

    /// For a worker that has nothing else to wait for.
    ///
    /// - Parameter deadline: nil for as long as it takes.
    package func wait(until deadline: ContinuousClock.Instant?) { _ = news.wait(until: deadline) }
}
