import DequeModule
import Synchronization

/// An asynchronous sequence of a client's events, for one consumer. Leaving the loop and dropping the sequence frees
/// everything it holds. In a cancelled task it ends.
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

/// An asynchronous sequence of a client's events that throws if it cannot continue at all. Otherwise like
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

/// A bounded buffer between the client and one consumer. Any thread may put elements; one task at a time takes them.
///
/// Dropped elements are counted: the consumer learns how many it missed, and where.
package final class Mailbox<Element: Sendable>: Sendable {
    /// The elements to drop when the buffer is full.
    package enum Overflow {
        /// The oldest element.
        case oldest
        /// Everything, because later elements make no sense without the missing ones.
        case all
    }

    package enum Delivery: Sendable {
        case element(Element)
        /// The number of elements dropped at this place.
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
    /// False if only the newest element matters: dropped elements are then not counted.
    private let countsMissed: Bool

    package init(limit: Int, _ overflow: Overflow = .oldest, countsMissed: Bool = true) {
        self.limit = max(1, limit)
        self.overflow = overflow
        self.countsMissed = countsMissed
    }

    /// The number of elements in the buffer.
    package var count: Int { state.withLock { $0.items.count } }

    /// Adds an element. Never blocks.
    package func put(_ element: Element) {
        wakeWaiters { state in
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

    /// Accepts no more elements. Those in the buffer can still be taken, followed by the error, or the end.
    package func finish(_ error: RoostError? = nil) {
        wakeWaiters { state in
            if state.end == nil { state.end = error.map { .failed($0) } ?? .normal }
        }
    }

    /// Waits for the next element. Returns nil at the end, and in a cancelled task.
    package func next() async throws(RoostError) -> Delivery? {
        while !Task.isCancelled {
            switch state.withLock({ Self.takeNext(from: &$0) }) {
            case .delivery(let delivery): return delivery
            case .end: return nil
            case .failure(let error): throw error
            case .nothing: if await waitForElement() == .cancelled { return nil }
            }
        }
        return nil
    }

    private enum Taken: Sendable {
        case delivery(Delivery), end, failure(RoostError), nothing
    }

    private static func takeNext(from state: inout State) -> Taken {
        if state.missed > 0 {
            defer { state.missed = 0 }
            return .delivery(.missed(state.missed))
        }
        if let element = state.items.popFirst() { return .delivery(.element(element)) }
        switch state.end {
        case .normal: return .end
        case .failed(let error):
            // Thrown once; afterwards the sequence is at its end.
            state.end = .normal
            return .failure(error)
        case nil: return .nothing
        }
    }

    private func waitForElement() async -> Wakeup {
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

    private func wakeWaiters(_ change: (inout State) -> Void) {
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
    /// Waits for the next element for which `read` returns a value. Returns nil at the end, and in a cancelled task.
    ///
    /// - Parameter lease: held while the consumer may still wait.
    func nextValue<Value>(_ lease: Lease, _ read: (Delivery) -> Value?) async throws(RoostError) -> Value? {
        while let delivery = try await next() {
            if let value = read(delivery) { return withExtendedLifetime(lease) { value } }
        }
        return nil
    }

    /// Waits for the next element for which `read` returns a value, in a buffer that never finishes with an error.
    func nextOrEnd<Value>(_ lease: Lease, _ read: (Delivery) -> Value?) async -> Value? {
        // An error could only mean the end.
        do throws(RoostError) { return try await nextValue(lease, read) } catch { return nil }
    }

    /// Waits for the next element of a buffer that counts nothing and never finishes with an error.
    func element(_ lease: Lease) async -> Element? {
        await nextOrEnd(lease) { if case .element(let element) = $0 { element } else { nil } }
    }
}

/// Held by all potential consumers of a sequence; calls a closure when the last one releases it.
final class Lease: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
