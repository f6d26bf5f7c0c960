public import Foundation

/// Keeps an outbox for as long as the process lives: for tests, previews and tools.
public final class MemoryOutboxStorage: OutboxStorage {
    private var entries: [UUID: OutboxEntry]

    /// - Parameter entries: what a run before this one left behind.
    public init(entries: [OutboxEntry] = []) {
        self.entries = Dictionary(entries.map { ($0.localID, $0) }) { _, last in last }
    }

    public func load() -> [OutboxEntry] { Array(entries.values) }

    public func save(_ entry: OutboxEntry) { entries[entry.localID] = entry }

    public func remove(_ localID: UUID) { entries[localID] = nil }
}
