package import Foundation

/// A folder reserved for one process until that process ends, in whatever way (flock(2)): another demo in it would stop this one's
/// Postgres, or delete its data.
package final class FolderLock: Sendable {
    private let descriptor: Int32

    /// - Parameter folder: an existing one.
    /// - Throws: `PrivateCluster.Failure` if another process has it, or if no file can be created in it.
    package init(_ folder: URL) throws {
        let path = folder.appendingPathComponent("lock").path
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw PrivateCluster.Failure(
                description: "Cannot write \(path) (\(String(cString: strerror(errno)))); "
                    + "choose another folder with --folder.")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw PrivateCluster.Failure(
                description: "A demo runs in \(folder.path) already: stop it, or choose another --folder, "
                    + "--postgres-port and --http-port.")
        }
    }

    deinit { close(descriptor) }
}
