import DequeModule
import Synchronization

/// An asynchronous sequence of what a client hears. Each is for one consumer. Leaving the loop and dropping the sequence
/// frees all that it holds. In a cancelled task it ends.
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

/// An asynchronous sequence of what a client hears that throws when it cannot go on at all. In all else it is a
/// `RoostSequence`.
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

/// A bounded buffer between the client and one consumer. Any thread may put; one task at a time takes.
///
/// What does not fit is counted: the consumer learns how much it missed at the place where it missed it.
package final class Mailbox<Element: Sendable>: Sendable {
    /// What is dropped when the buffer is full.
    package enum Overflow {
        /// The oldest element.
        case oldest
        /// Everything, because what follows makes no sense without what is missing.
        case all
    }

    package enum Delivery: Sendable {
        case element(Element)
        /// How many elements were dropped at this place.
        case missed(Int)
    }

    private struct State {
        var items = Deque<Element>()
        var missed = 0
        var waiting: [(id: Int, continuation: CheckedContinuation<Wakeup, Never>)] = []
        var nextID = 0
        var end: End?
    }

    private enum End {
        case normal
        case failed(RoostError)
    }

    private enum Wakeup {
        case look, cancelled
    }

    private let state = Mutex(State())
    private let limit: Int
    private let overflow: Overflow
    /// False for the newest of something, of which nobody needs older versions: what is dropped is then not counted.
    private let countsMissed: Bool

    package init(limit: Int, _ overflow: Overflow = .oldest, countsMissed: Bool = true) {
        self.limit = max(1, limit)
        self.overflow = overflow
        self.countsMissed = countsMissed
    }

    /// How many elements wait to be taken.
    package var count: Int { state.withLock { $0.items.count } }

    /// Adds an element. Never waits.
    package func put(_ element: Element) {
        wake { state in
            guard state.end == nil else { return }
            if state.items.count >= limit {
                switch overflow {
                case .oldest:
                    state.items.removeFirst()
                    state.missed += countsMissed ? 1 : 0
                case .all:
                    state.missed += countsMissed ? state.items.count : 0
                    state.items.removeAll()
                }
            }
            state.items.append(element)
        }
    }

    /// Adds nothing more. What is in the buffer can still be taken; then comes the error, or the end.
    package func finish(_ error: RoostError? = nil) {
        wake { state in
            if state.end == nil { state.end = error.map { .failed($0) } ?? .normal }
        }
    }

    /// Waits for the next element. Returns nil at the end, and in a cancelled task.
    package func next() async throws(RoostError) -> Delivery? {
        while !Task.isCancelled {
            switch state.withLock({ Self.take(from: &$0) }) {
            case .delivery(let delivery): return delivery
            case .end: return nil
            case .failure(let error): throw error
            case .nothing: if await wait() == .cancelled { return nil }
            }
        }
        return nil
    }

    private enum Taken: Sendable {
        case delivery(Delivery), end, failure(RoostError), nothing
    }

    private static func take(from state: inout State) -> Taken {
        if state.missed > 0 {
            defer { state.missed = 0 }
            return .delivery(.missed(state.missed))
        }
        if let element = state.items.popFirst() { return .delivery(.element(element)) }
        switch state.end {
        case .normal: return .end
        case .failed(let error):
            // Thrown once; whoever asks again gets the end.
            state.end = .normal
            return .failure(error)
        case nil: return .nothing
        }
    }

    private func wait() async -> Wakeup {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let wakeup: Wakeup? = state.withLock { state in
                    if Task.isCancelled { return .cancelled }
                    if state.missed > 0 || !state.items.isEmpty || state.end != nil { return .look }
                    state.waiting.append((id, continuation))
                    return nil
                }
                if let wakeup { continuation.resume(returning: wakeup) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0).continuation }
            }
            waiter?.resume(returning: .cancelled)
        }
    }

    private func wake(_ change: (inout State) -> Void) {
        let waiting = state.withLock { state in
            change(&state)
            guard !state.items.isEmpty || state.end != nil else { return [CheckedContinuation<Wakeup, Never>]() }
            defer { state.waiting = [] }
            return state.waiting.map(\.continuation)
        }
        for continuation in waiting { continuation.resume(returning: .look) }
    }
}

extension Mailbox {
    /// Waits for the next delivery of which `read` makes something. Returns nil at the end, and in a cancelled task.
    ///
    /// - Parameter lease: is held while somebody may still wait.
    func next<Value>(_ lease: Lease, _ read: (Delivery) -> Value?) async throws(RoostError) -> Value? {
        while let delivery = try await next() {
            if let value = read(delivery) { return withExtendedLifetime(lease) { value } }
        }
        return nil
    }

    /// Waits for the next delivery of which `read` makes something, of a buffer that is never finished with an error.
    func nextOrEnd<Value>(_ lease: Lease, _ read: (Delivery) -> Value?) async -> Value? {
        // An end is all that an error could mean.
        do throws(RoostError) { return try await next(lease, read) } catch { return nil }
    }

    /// Waits for the next element of a buffer that counts nothing and is never finished with an error.
    func element(_ lease: Lease) async -> Element? {
        await nextOrEnd(lease) { if case .element(let element) = $0 { element } else { nil } }
    }
}

/// Held by all who may still read a sequence; when the last one lets go, it calls a closure.
final class Lease: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
