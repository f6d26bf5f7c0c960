public import Foundation

/// Where an outbox keeps what is not sent yet, so that it survives the end of the app.
///
/// An outbox calls its storage from one thread at a time, and never while another call runs: an implementation needs no
/// lock. A call may block for as long as a write to the disk takes.
///
/// The promise that everything else rests on: when a call returns, what it wrote survives the end of the process; when
/// it throws or never returns, either all of it was written or nothing.
public protocol OutboxStorage: AnyObject {
    /// All entries, in any order. Called before any other; once, unless it throws.
    func load() throws -> [OutboxEntry]

    /// Adds an entry, or puts it in the place of the one with the same `localID`.
    func save(_ entry: OutboxEntry) throws

    /// Removes an entry; one that is not there is no error.
    func remove(_ localID: UUID) throws
}

/// One payload that waits to be sent, as a storage keeps it.
public struct OutboxEntry: Codable, Sendable, Equatable {
    /// What the server knows a repeat by; a column with a unique constraint there.
    public let localID: UUID
    /// Entries of one lane are sent in the order of their positions, one at a time.
    public let lane: String
    /// Grows with every entry. A storage may return entries in any order.
    public internal(set) var position: Int64
    /// JSON.
    public let payload: Data
    /// Why the server will not have it; nil while it waits.
    public internal(set) var failure: String?

    /// For storages that keep the fields apart.
    public init(localID: UUID, lane: String, position: Int64, payload: Data, failure: String?) {
        self.localID = localID
        self.lane = lane
        self.position = position
        self.payload = payload
        self.failure = failure
    }
}

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

/// What an outbox cannot do, each with a sentence that says what to do.
public enum OutboxError: Error, Sendable, Equatable {
    case full(waiting: Int, failed: Int)
    case timedOut(Duration)
    case inUse(path: String)
    case damaged(path: String, line: Int)
    case file(path: String, operation: String, reason: String)
}

extension OutboxError: LocalizedError, CustomStringConvertible {
    public var description: String {
        switch self {
        case .full(let waiting, let failed):
            "the outbox is full (\(waiting) wait, \(failed) failed): wait until some are sent, or discard failed ones"
        case .timedOut(let limit):
            "the send took longer than \(limit): it was cancelled and is tried again"
        case .inUse(let path):
            "\(path) belongs to another outbox that is open: use one outbox for each file"
        case .damaged(let path, let line):
            "line \(line) of \(path) cannot be read: move the file away to begin with an empty outbox"
        case .file(let path, let operation, let reason):
            "cannot \(operation) \(path): \(reason)"
        }
    }

    public var errorDescription: String? { description }
}
