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

    /// Takes hold of a file, whose folder has to exist. Only `FILE.lock` beside it is created now.
    ///
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

/// An open file, which is closed when the value ends. Its errors name it.
struct OutboxFile: ~Copyable {
    private let descriptor: Int32
    private let path: String

    /// Opens a file; one that is created belongs to the user alone.
    ///
    /// - Parameter flags: as for open(2).
    init(_ path: String, flags: Int32) throws(OutboxError) {
        self.path = path
        descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure("open", path) }
    }

    deinit {
        // A process that was forked and does not run its own program yet has this opening, too, and with it the lock.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Locks the file with flock(2). The lock belongs to this opening of the file and ends with it, also when the process is
    /// killed.
    ///
    /// - Returns: false if somebody else has the lock.
    func lock() throws(OutboxError) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK else { throw Self.failure("lock", path) }
        return false
    }

    func write(_ bytes: Data) throws(OutboxError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest.removeFirst(count)
            } else if errno != EINTR {
                throw Self.failure("write", path)
            }
        }
    }

    /// Waits until what was written survives the loss of power.
    func sync() throws(OutboxError) {
        #if canImport(Darwin)
            // fsync(2) of Darwin leaves it in the drive's cache; file systems that cannot do better refuse this.
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        guard fsync(descriptor) == 0 else { throw Self.failure("sync", path) }
    }

    func truncate(to length: Int) throws(OutboxError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw Self.failure("truncate", path) }
    }

    static func failure(_ operation: String, _ path: String) -> OutboxError {
        .file(path: path, operation: operation, reason: String(cString: strerror(errno)))
    }
}

/// The format of an outbox file: a line that says what it is, then a line for each write. It has no I/O.
enum OutboxLog {
    private struct Header: Codable, Equatable {
        var roost_outbox = 1
    }

    private struct Line: Codable {
        var save: OutboxEntry?
        var remove: UUID?
    }

    /// What a file says.
    struct Content {
        var entries: [UUID: OutboxEntry] = [:]
        /// How many lines follow the header.
        var lines = 0
        /// Where the last whole line ends, in bytes.
        var end = 0
    }

    /// The number of a line that cannot be read, from 1 on.
    struct Damage: Error, Equatable {
        let line: Int
    }

    static func header() throws -> Data { try line(Header()) }

    static func saving(_ entry: OutboxEntry) throws -> Data { try line(Line(save: entry)) }

    static func removing(_ localID: UUID) throws -> Data { try line(Line(remove: localID)) }

    /// Reads a file. Its last line may be torn, when the process or the power ended in the middle of writing it; nobody
    /// learned that it was written, so it does not count. Any other line that cannot be read is damage.
    static func read(_ bytes: Data) throws(Damage) -> Content {
        var content = Content()
        let decoder = JSONDecoder()
        var number = 0
        var start = bytes.startIndex
        while start < bytes.endIndex {
            number += 1
            let newline = bytes[start...].firstIndex(of: 0x0A)
            let next = newline.map { $0 + 1 } ?? bytes.endIndex
            let isRead = newline.map { take(bytes[start..<$0], number, into: &content, decoder) } ?? false
            guard isRead else {
                guard next == bytes.endIndex, number > 1 else { throw Damage(line: number) }
                return content
            }
            start = next
            content.end = next - bytes.startIndex
        }
        return content
    }

    private static func take(_ bytes: Data, _ number: Int, into content: inout Content, _ decoder: JSONDecoder) -> Bool
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

    private static func line(_ value: some Encodable) throws -> Data {
        var bytes = try JSONEncoder().encode(value)
        // JSON escapes the newlines within its strings.
        bytes.append(0x0A)
        return bytes
    }
}
