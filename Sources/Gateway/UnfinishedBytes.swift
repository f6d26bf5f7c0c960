import Synchronization

/// What the loops hold of requests and WebSocket messages that are not complete: one cap for all of them, because each of
/// many may be as large as one message may be.
///
/// Whoever holds bytes says how many more or fewer they are now, and lets go of them where that is over the cap. Safe from
/// any thread.
package final class UnfinishedBytes: Sendable {
    private let cap: Atomic<Int>
    private let held = Atomic<Int>(0)

    package init(cap: Int) {
        self.cap = Atomic(cap)
    }

    /// Another cap from here on.
    package func adopt(cap: Int) { self.cap.store(cap, ordering: .relaxed) }

    package var count: Int { held.load(ordering: .relaxed) }

    /// What one connection may hold in any case: whoever fills the cap is not to keep others from sending what is small.
    package static let free = 16_384

    /// There is little left of it, so what was held for long is to go.
    package var isTight: Bool { count > cap.load(ordering: .relaxed) / 2 }

    /// Counts bytes, over the cap or not.
    ///
    /// - Parameter difference: negative for what is held no longer.
    /// - Returns: false where there is too much now; the bytes count until they are given back.
    package func change(by difference: Int) -> Bool {
        let now = held.wrappingAdd(difference, ordering: .relaxed).newValue
        return difference <= 0 || now <= cap.load(ordering: .relaxed)
    }
}
