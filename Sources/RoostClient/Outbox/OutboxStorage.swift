public import Foundation

/// The storage of an outbox for unsent payloads, so that they survive the end of the app.
///
/// An outbox calls its storage from one thread at a time, and never while another call runs: an implementation needs no
/// lock. A call may block for as long as a write to the disk takes.
///
/// Everything else depends on this guarantee: when a call returns, its write survives the end of the process; when it
/// throws or never returns, either all of it was written or nothing.
public protocol OutboxStorage: AnyObject {
    /// Returns all entries, in any order. Called before all other methods; once, unless it throws.
    func load() throws -> [OutboxEntry]

    /// Adds an entry, or replaces the one with the same `localID`.
    func save(_ entry: OutboxEntry) throws

    /// Removes an entry; a missing one is not an error.
    func remove(_ localID: UUID) throws
}

/// One payload that waits to be sent, as stored.
public struct OutboxEntry: Codable, Sendable, Equatable {
    /// Identifies repeats at the server: a column with a unique constraint there.
    public let localID: UUID
    /// Entries of one lane are sent in the order of their positions, one at a time.
    public let lane: String
    /// Grows with every entry. A storage may return entries in any order.
    public internal(set) var position: Int64
    /// The payload as JSON.
    public let payload: Data
    /// The reason why the server rejects the payload; nil while it waits to be sent.
    public internal(set) var failure: String?

    /// Creates an entry from its fields, for storages that keep them apart.
    public init(localID: UUID, lane: String, position: Int64, payload: Data, failure: String?) {
        self.localID = localID
        self.lane = lane
        self.position = position
        self.payload = payload
        self.failure = failure
    }
}

/// Stores an outbox for the life of the process: for tests, previews and tools.
public final class MemoryOutboxStorage: OutboxStorage {
    private var entries: [UUID: OutboxEntry]

    /// - Parameter entries: the entries of an earlier run.
    public init(entries: [OutboxEntry] = []) {
        self.entries = Dictionary(entries.map { ($0.localID, $0) }) { _, last in last }
    }

    public func load() -> [OutboxEntry] { Array(entries.values) }

    public func save(_ entry: OutboxEntry) { entries[entry.localID] = entry }

    public func remove(_ localID: UUID) { entries[localID] = nil }
}

/// The reason why an outbox cannot do something, with a sentence about the remedy.
public enum OutboxError: Error, Sendable, Equatable {
    /// The outbox holds as many payloads as `OutboxOptions.capacity` allows.
    case full(waiting: Int, failed: Int)
    /// A send took longer than `OutboxOptions.sendTimeout`.
    case timedOut(Duration)
    /// Another outbox has the file open.
    case inUse(path: String)
    /// The file is not an outbox, or a line in the middle of it cannot be read.
    case damaged(path: String, line: Int)
    /// The system refused an operation on a file, for this reason.
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
