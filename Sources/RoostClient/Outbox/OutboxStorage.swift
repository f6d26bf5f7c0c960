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
