package import Foundation

/// A folder that one process has to itself until it ends, however it ends (flock(2)): another demo in it would stop this one's Postgres,
/// or throw its data away.
package final class FolderLock: Sendable {
    private let descriptor: Int32

    /// - Parameter folder: an existing one.
    /// - Throws: `PrivateCluster.Failure` where another process has it, or where no file can be made in it.
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
