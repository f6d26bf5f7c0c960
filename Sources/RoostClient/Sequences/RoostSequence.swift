/// An asynchronous sequence of what a client is told. Each is for one consumer; to let go of it (by leaving the loop
/// and dropping the sequence) frees all that it holds. In a cancelled task it ends.
public struct RoostSequence<Element: Sendable>: AsyncSequence, Sendable {
    public typealias Failure = Never
    let pull: @Sendable () async -> Element?

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Failure = Never
        let pull: @Sendable () async -> Element?

        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Element? {
            await pull()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pull: pull) }
}

/// As `RoostSequence`, for what can end with an error: when it cannot go on at all.
public struct RoostThrowingSequence<Element: Sendable>: AsyncSequence, Sendable {
    public typealias Failure = RoostError
    let pull: @Sendable () async throws(RoostError) -> Element?

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Failure = RoostError
        let pull: @Sendable () async throws(RoostError) -> Element?

        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RoostError) -> Element? {
            try await pull()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pull: pull) }
}
