public import Foundation

/// Stores an outbox in a file: a log that every write appends to, and that is rewritten when most of it is outdated.
///
/// A write returns once it survives a loss of power. The file may be cut off at any byte of its last write, which then
/// does not count. A new log replaces the old one by rename(2), so that one of them is always whole.
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

    /// Takes possession of a file, whose folder must exist. Only `FILE.lock` beside it is created now.
    ///
    /// - Throws: ``OutboxError/inUse(path:)``, ``OutboxError/file(path:operation:reason:)``
    public init(at file: URL) throws(OutboxError) {
        path = file.path
        guardian = try OutboxFile(path + ".lock", flags: O_RDWR | O_CREAT)
        guard try guardian.lock() else { throw .inUse(path: path) }
    }

    /// - Throws: ``OutboxError/damaged(path:line:)`` for a file that is not an outbox; it is not changed.
    public func load() throws -> [OutboxEntry] {
        let isThere = FileManager.default.fileExists(atPath: path)
        let bytes = isThere ? try Data(contentsOf: URL(fileURLWithPath: path)) : Data()
        if bytes.isEmpty {
            try rewriteLog([:])
            return []
        }
        let content: OutboxLog.Content
        do throws(OutboxLog.Damage) {
            content = try OutboxLog.parseLog(bytes)
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
        try writeLine(try OutboxLog.savingLine(entry), after)
    }

    public func remove(_ localID: UUID) throws {
        var after = entries
        guard after.removeValue(forKey: localID) != nil else { return }
        try writeLine(try OutboxLog.removingLine(localID), after)
    }

    private func writeLine(_ line: Data, _ after: [UUID: OutboxEntry]) throws {
        guard log != nil, lines < 2 * after.count + 100 else { return try rewriteLog(after) }
        do {
            try log?.write(line)
            try log?.sync()
        } catch {
            abandonLog()
            throw error
        }
        entries = after
        length += line.count
        lines += 1
    }

    /// After an error the content of the disk is unknown: a later sync may succeed without it. So nothing more is
    /// appended to the log, and the next change rewrites it.
    private func abandonLog() {
        do { try log?.truncate(to: length) } catch {
            // A write that was reported as failed may count after a restart; at worst it is sent again.
        }
        log = nil
    }

    private func rewriteLog(_ after: [UUID: OutboxEntry]) throws {
        var bytes = try OutboxLog.headerLine()
        for entry in after.values { bytes += try OutboxLog.savingLine(entry) }
        let fresh = try OutboxFile(path + ".new", flags: O_WRONLY | O_APPEND | O_CREAT | O_TRUNC)
        try fresh.write(bytes)
        try fresh.sync()
        log = nil
        guard rename(path + ".new", path) == 0 else { throw OutboxFile.systemError("replace", path) }
        // Only this puts the new name of the file on the disk.
        try OutboxFile(URL(fileURLWithPath: path).deletingLastPathComponent().path, flags: O_RDONLY).sync()
        log = consume fresh
        entries = after
        length = bytes.count
        lines = after.count
    }
}

/// An open file, closed when the value ends. Its errors name it.
struct OutboxFile: ~Copyable {
    private let descriptor: Int32
    private let path: String

    /// Opens a file. A created one is accessible only to the user.
    ///
    /// - Parameter flags: as for open(2).
    init(_ path: String, flags: Int32) throws(OutboxError) {
        self.path = path
        descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.systemError("open", path) }
    }

    deinit {
        // A forked process that does not run its own program yet shares this open file, and the lock with it.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Locks the file with flock(2). The lock belongs to this opening of the file and ends with it, also if the process
    /// is killed.
    ///
    /// - Returns: false if another opening has the lock.
    func lock() throws(OutboxError) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK else { throw Self.systemError("lock", path) }
        return false
    }

    func write(_ bytes: Data) throws(OutboxError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest.removeFirst(count)
            } else if errno != EINTR {
                throw Self.systemError("write", path)
            }
        }
    }

    /// Waits until the written data survives a loss of power.
    func sync() throws(OutboxError) {
        #if canImport(Darwin)
            // On Darwin fsync(2) leaves data in the drive's cache; file systems without F_FULLFSYNC refuse it.
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        guard fsync(descriptor) == 0 else { throw Self.systemError("sync", path) }
    }

    func truncate(to length: Int) throws(OutboxError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw Self.systemError("truncate", path) }
    }

    static func systemError(_ operation: String, _ path: String) -> OutboxError {
        .file(path: path, operation: operation, reason: String(cString: strerror(errno)))
    }
}

/// The format of an outbox file: a line that identifies it, then a line for each write. It has no I/O.
enum OutboxLog {
    private struct Header: Codable, Equatable {
        var roost_outbox = 1
    }

    private struct Line: Codable {
        var save: OutboxEntry?
        var remove: UUID?
    }

    /// The content of a file.
    struct Content {
        var entries: [UUID: OutboxEntry] = [:]
        /// The number of lines after the header.
        var lines = 0
        /// The end of the last whole line, in bytes.
        var end = 0
    }

    /// The number of an unreadable line, from 1.
    struct Damage: Error, Equatable {
        let line: Int
    }

    static func headerLine() throws -> Data { try encodeLine(Header()) }

    static func savingLine(_ entry: OutboxEntry) throws -> Data { try encodeLine(Line(save: entry)) }

    static func removingLine(_ localID: UUID) throws -> Data { try encodeLine(Line(remove: localID)) }

    /// Parses a file. Its last line may be incomplete if the process or the power ended during the write; that write
    /// was never reported as done, so it does not count. Any other unreadable line is damage.
    static func parseLog(_ bytes: Data) throws(Damage) -> Content {
        var content = Content()
        let decoder = JSONDecoder()
        var number = 0
        var start = bytes.startIndex
        while start < bytes.endIndex {
            number += 1
            let newline = bytes[start...].firstIndex(of: 0x0A)
            let next = newline.map { $0 + 1 } ?? bytes.endIndex
            let isRead = newline.map { parseLine(bytes[start..<$0], number, into: &content, decoder) } ?? false
            guard isRead else {
                guard next == bytes.endIndex, number > 1 else { throw Damage(line: number) }
                return content
            }
            start = next
            content.end = next - bytes.startIndex
        }
        return content
    }

    private static func parseLine(_ bytes: Data, _ number: Int, into content: inout Content, _ decoder: JSONDecoder)
        -> Bool
    {
        do {
            if number == 1 { return try decoder.decode(Header.self, from: bytes) == Header() }
            let line = try decoder.decode(Line.self, from: bytes)
            if let entry = line.save {
                content.entries[entry.localID] = entry
            } else if let localID = line.remove {
                content.entries[localID] = nil
            } else {
                return false
            }
            content.lines += 1
            return true
        } catch {
            return false
        }
    }

    private static func encodeLine(_ value: some Encodable) throws -> Data {
        var bytes = try JSONEncoder().encode(value)
        // JSON escapes the newlines in its strings.
        bytes.append(0x0A)
        return bytes
    }
}
