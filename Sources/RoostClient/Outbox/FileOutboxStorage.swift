public import Foundation

/// Keeps an outbox in a file: a log that every write appends to, and that is written anew when most of it is history.
///
/// A write returns when it survives the loss of power. The file may be cut off at any byte of its last write, which then
/// does not count. A new log takes the place of the old one by rename(2), so that there is always one that is whole.
///
/// The file belongs to one outbox at a time; a second one is refused. Keep it in the app's own container: iOS ends apps
/// that hold a lock in a shared one while they are suspended.
public final class FileOutboxStorage: OutboxStorage {
    private let path: String
    private let guardian: OutboxFile
    private var entries: [UUID: OutboxEntry] = [:]
    private var log: OutboxFile?
    private var length = 0
    private var lines = 0

    /// Creates nothing but `FILE.lock` beside it; its folder has to exist.
    /// - Throws: ``OutboxError/inUse(path:)``, ``OutboxError/file(path:operation:reason:)``
    public init(at file: URL) throws(OutboxError) {
        path = file.path
        guardian = try OutboxFile(path + ".lock", flags: O_RDWR | O_CREAT)
        guard try guardian.lock() else { throw .inUse(path: path) }
    }

    /// - Throws: ``OutboxError/damaged(path:line:)`` for a file that is no outbox; it is left as it is.
    public func load() throws -> [OutboxEntry] {
        let isThere = FileManager.default.fileExists(atPath: path)
        let bytes = isThere ? try Data(contentsOf: URL(fileURLWithPath: path)) : Data()
        if bytes.isEmpty {
            try rewrite([:])
            return []
        }
        let content: OutboxLog.Content
        do throws(OutboxLog.Damage) {
            content = try OutboxLog.read(bytes)
        } catch {
            throw OutboxError.damaged(path: path, line: error.line)
        }
        entries = content.entries
        lines = content.lines
        length = content.end
        let log = try OutboxFile(path, flags: O_WRONLY | O_APPEND)
        if length < bytes.count {
            try log.truncate(to: length)
            try log.sync()
        }
        self.log = consume log
        return Array(entries.values)
    }

    public func save(_ entry: OutboxEntry) throws {
        var after = entries
        after[entry.localID] = entry
        try write(try OutboxLog.saving(entry), after)
    }

    public func remove(_ localID: UUID) throws {
        var after = entries
        guard after.removeValue(forKey: localID) != nil else { return }
        try write(try OutboxLog.removing(localID), after)
    }

    private func write(_ line: Data, _ after: [UUID: OutboxEntry]) throws {
        guard log != nil, lines < 2 * after.count + 100 else { return try rewrite(after) }
        do {
            try log?.write(line)
            try log?.sync()
        } catch {
            abandon()
            throw error
        }
        entries = after
        length += line.count
        lines += 1
    }

    /// After an error nobody knows what is on the disk: a later sync may succeed without it. So the log is not appended to
    /// any more, but written anew with the next change.
    private func abandon() {
        do { try log?.truncate(to: length) } catch {
            // What the caller was told has failed may count after a restart; it is sent again at worst.
        }
        log = nil
    }

    private func rewrite(_ after: [UUID: OutboxEntry]) throws {
        var bytes = try OutboxLog.header()
        for entry in after.values { bytes += try OutboxLog.saving(entry) }
        let fresh = try OutboxFile(path + ".new", flags: O_WRONLY | O_APPEND | O_CREAT | O_TRUNC)
        try fresh.write(bytes)
        try fresh.sync()
        log = nil
        guard rename(path + ".new", path) == 0 else { throw OutboxFile.failure("replace", path) }
        // The folder has the new name on the disk only after this.
        try OutboxFile(URL(fileURLWithPath: path).deletingLastPathComponent().path, flags: O_RDONLY).sync()
        log = consume fresh
        entries = after
        length = bytes.count
        lines = after.count
    }
}
