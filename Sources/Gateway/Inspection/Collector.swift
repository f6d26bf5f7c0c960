import Synchronization

/// Gathers what the loops answer to one question, and passes it on when the last of them has.
package final class Collector<Part: Sendable>: Sendable {
    private let state: Mutex<(parts: [Part], missing: Int)>
    private let whenComplete: @Sendable ([Part]) -> Void

    /// - Parameter whenComplete: called once, on the thread of whoever answers last.
    package init(count: Int, whenComplete: @escaping @Sendable ([Part]) -> Void) {
        state = Mutex((parts: [], missing: count))
        self.whenComplete = whenComplete
    }

    package func add(_ part: Part) {
        let all = state.withLock { state -> [Part]? in
            state.parts.append(part)
            state.missing -= 1
            return state.missing == 0 ? state.parts : nil
        }
        if let all { whenComplete(all) }
    }
}
