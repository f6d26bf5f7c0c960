import Dispatch
import Foundation
import Synchronization

/// Stores a list on its own queue shortly after each change, and once more when its consumer is gone.
final class ListWriter: Sendable {
    /// Changes within this time are stored together.
    private static let pause = DispatchTimeInterval.milliseconds(250)

    private struct State {
        var isDue = false
        weak var replica: ListReplica?
    }

    private let keeping: RowKeeping
    private let queue = DispatchQueue(label: "roost.rows")
    private let state = Mutex(State())

    init(_ keeping: RowKeeping) { self.keeping = keeping }

    /// Stores the changes of this list.
    func watchChanges(_ replica: ListReplica) { state.withLock { $0.replica = replica } }

    func noteChange() {
        let isFirst = state.withLock { state in
            guard !state.isDue, state.replica != nil else { return false }
            state.isDue = true
            return true
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + Self.pause) { [self] in
            let replica = state.withLock { state in
                state.isDue = false
                return state.replica
            }
            if let replica { saveNow(replica) }
        }
    }

    /// Stores the list in its present state.
    func saveSoon(_ replica: ListReplica) {
        queue.async { [self] in saveNow(replica) }
    }

    private func saveNow(_ replica: ListReplica) {
        guard let rows = replica.storedRows() else { return }
        do { try keeping.storage.save(rows, as: keeping.name) } catch {
            // Shown to the consumer: the list is right all the same, but will be missing next time.
            replica.showProblem("The list cannot be stored as \(keeping.name): \(error)")
        }
    }
}
