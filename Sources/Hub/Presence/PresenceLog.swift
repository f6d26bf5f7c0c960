import OrderedCollections
import Synchronization

/// What changed in who is present, for whoever writes it down: the newest word on each, not the way there.
///
/// Safe from any thread. The loops note; one writer takes, now and then, and may ask for everything when it has lost its
/// place (another connection, another database).
package final class PresenceLog: Sendable {
    package struct Change: Sendable, Equatable {
        package let ref: String
        /// Nil: gone.
        package let record: PresenceRecord?

        package init(ref: String, record: PresenceRecord?) {
            self.ref = ref
            self.record = record
        }
    }

    private struct State {
        var records: [String: PresenceRecord] = [:]
        var changed: OrderedSet<String> = []
    }

    private let state = Mutex(State())

    package init() {}

    package func put(_ record: PresenceRecord) {
        state.withLock { state in
            state.records[record.ref] = record
            state.changed.append(record.ref)
        }
    }

    package func remove(_ ref: String) {
        state.withLock { state in
            guard state.records.removeValue(forKey: ref) != nil else { return }
            state.changed.append(ref)
        }
    }

    /// What the writer has not heard yet, at most `limit` of it; it counts as heard from here on.
    package func take(upTo limit: Int = .max) -> [Change] {
        state.withLock { state in
            let refs = Array(state.changed.prefix(limit))
            state.changed.removeFirst(refs.count)
            return refs.map { Change(ref: $0, record: state.records[$0]) }
        }
    }

    /// The writer could not write these: they are to come again, unless something newer does.
    package func giveBack(_ changes: [Change]) {
        state.withLock { state in
            for change in changes { state.changed.append(change.ref) }
        }
    }

    /// Everybody counts as changed: the writer begins on an empty page.
    package func takeFromTheStart() {
        state.withLock { $0.changed = OrderedSet($0.records.keys) }
    }

    package var isEmpty: Bool { state.withLock { $0.changed.isEmpty } }
    package var count: Int { state.withLock { $0.records.count } }
}
