import Foundation

/// An open file, with errors that name it. Closed when it goes.
struct OutboxFile: ~Copyable {
    private let descriptor: Int32
    private let path: String

    /// - Parameter flags: as for open(2); what is created is the user's alone.
    init(_ path: String, flags: Int32) throws(OutboxError) {
        self.path = path
        descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure("open", path) }
    }

    deinit { close(descriptor) }

    /// flock(2), which belongs to this opening of the file and ends with it, also when the process is killed.
    /// - Returns: false if another one has it.
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

    /// Returns when what was written survives the loss of power.
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
