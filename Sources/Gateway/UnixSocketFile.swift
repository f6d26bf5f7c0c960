import CWebSockets
import Glibc

/// The file of a Unix domain socket that the hub listens at, for a proxy on the same machine.
struct UnixSocketFile {
    let path: String
    private var device: UInt = 0
    private var inode: UInt = 0

    /// Listens there. The descriptor is the caller's.
    static func listen(at path: String, mode: Int) throws(GatewayError) -> (file: UnixSocketFile, descriptor: Int32) {
        let descriptor = roost_listen_unix(path, UInt32(mode), 4096)
        guard descriptor >= 0 else { throw .cannotListenAt(path: path, problem: errno) }
        var file = UnixSocketFile(path: path)
        // Where this fails the file is gone, and there will be nothing to remove.
        roost_identify(path, &file.device, &file.inode)
        return (file, descriptor)
    }

    private init(path: String) {
        self.path = path
    }

    /// Before the descriptor is closed: another hub that starts now makes a file of its own.
    func remove() {
        roost_unlink_unix(path, device, inode)
    }
}
