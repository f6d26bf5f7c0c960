import Foundation
import Synchronization

/// Rows of a list that are still in an outbox and shown before they are written.
///
/// ```swift
/// let mine = PendingRows.of(outbox) { item in
///     item.payload.conversation == conversation ? Message(item.payload, id: item.localID) : nil
/// }
/// ```
///
/// - A payload is shown from `enqueue` on, marked as `.pending`, and as `.sent` once the server has it.
/// - When its row arrives, recognized by its `localID`, it replaces the payload under the same `id`, and the outbox is
///   told (`confirm`).
/// - Payloads that the server rejects, or that the app discards, disappear.
public struct PendingRows<Row: Sendable>: Sendable {
    /// The column with a payload's `localID`.
    let column: String
    /// Follows the outbox until its task is cancelled.
    let follow: @Sendable (PendingList<Row>) async -> Void
    let confirm: @Sendable (UUID) async throws -> Void

    /// - Parameters:
    ///   - outbox: the outbox with the payloads to show.
    ///   - column: the table's column with a payload's `localID`.
    ///   - row: returns the row that a payload will become; nil if it belongs to another list.
    public static func of<Payload: Codable & Sendable>(
        _ outbox: Outbox<Payload>, localID column: String = "local_id",
        row: @escaping @Sendable (OutboxItem<Payload>) -> Row?
    ) -> PendingRows {
        PendingRows(column: column) { list in
            while !Task.isCancelled {
                let events = await outbox.events()
                do { list.replaceItems(try await outbox.items().compactMap { Self.pendingItem($0, row) }) } catch {
                    return list.reportFailure("The outbox cannot be read: \(error)")
                }
                for await event in events {
                    switch event {
                    case .queued(let localID):
                        let item: OutboxItem<Payload>?
                        do { item = try await outbox.storedItem(localID) } catch { item = nil }
                        if let pending = item.flatMap({ Self.pendingItem($0, row) }) { list.addItem(pending) }
                    case .sent(let localID): list.markSent(localID)
                    case .failed(let localID, _), .discarded(let localID): list.remove(localID)
                    case .willRetry, .storageFailed, .overflowed: break
                    }
                }
            }
        } confirm: { localID in
            try await outbox.confirm(localID: localID)
        }
    }

    private static func pendingItem<Payload>(
        _ item: OutboxItem<Payload>, _ row: (OutboxItem<Payload>) -> Row?
    ) -> PendingList<Row>.Item? {
        if case .failed = item.state { return nil }
        return row(item).map { PendingList.Item(localID: item.localID, row: $0) }
    }
}

/// The payloads that a list shows, according to the outbox and the rows that arrive.
final class PendingList<Row: Sendable>: Sendable {
    struct Item: Sendable {
        let localID: UUID
        let row: Row
        var isSent = false
        /// Set if it was sent before the current reading of the list began: if its row is not there then, it belongs to
        /// another list.
        var isOld = false
    }

    private struct State {
        var items: [Item] = []
        /// Rows that arrived recently: the outbox may report them later.
        var arrived = RecentIDs(capacity: 1_000)
    }

    private let state = Mutex(State())
    private let confirm: @Sendable (UUID) -> Void
    private let onChange: @Sendable () -> Void
    private let onFailure: @Sendable (String) -> Void

    init(
        confirm: @escaping @Sendable (UUID) -> Void, onChange: @escaping @Sendable () -> Void,
        onFailure: @escaping @Sendable (String) -> Void
    ) {
        self.confirm = confirm
        self.onChange = onChange
        self.onFailure = onFailure
    }

    /// In the order of their enqueuing.
    var items: [Item] { state.withLock { $0.items } }

    func replaceItems(_ items: [Item]) {
        changeState { state in
            let sent = state.items.filter { old in old.isSent && !items.contains { $0.localID == old.localID } }
            let late = items.filter { state.arrived.contains($0.localID) }.map(\.localID)
            state.items = sent + items.filter { !late.contains($0.localID) }
            return late
        }
    }

    func addItem(_ item: Item) {
        changeState { state in
            guard !state.arrived.contains(item.localID) else { return [item.localID] }
            state.items.removeAll { $0.localID == item.localID }
            state.items.append(item)
            return []
        }
    }

    func markSent(_ localID: UUID) {
        changeState { state in
            for place in state.items.indices where state.items[place].localID == localID {
                state.items[place].isSent = true
            }
            return []
        }
    }

    func remove(_ localID: UUID) {
        changeState { state in
            state.items.removeAll { $0.localID == localID }
            return []
        }
    }

    /// Notes that a row has arrived.
    func rowArrived(_ localID: UUID) {
        changeState { state in
            state.arrived.insert(localID)
            guard state.items.contains(where: { $0.localID == localID }) else { return nil }
            state.items.removeAll { $0.localID == localID }
            return [localID]
        }
    }

    /// Notes that a reading of the list begins (true), or has ended.
    func setReading(_ isReading: Bool) {
        changeState { state in
            if isReading {
                for place in state.items.indices { state.items[place].isOld = state.items[place].isSent }
            } else {
                state.items.removeAll(where: \.isOld)
            }
            return nil
        }
    }

    func reportFailure(_ problem: String) { onFailure(problem) }

    /// - Parameter body: returns the payloads whose rows have arrived; nil if the list need not be shown again.
    private func changeState(_ body: (inout State) -> [UUID]?) {
        guard let confirmed = state.withLock({ body(&$0) }) else { return }
        for localID in confirmed { confirm(localID) }
        onChange()
    }
}
