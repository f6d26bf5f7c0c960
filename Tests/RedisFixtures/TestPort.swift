package import Glibc
import Synchronization

/// Ports of 127.0.0.1 for servers that a test starts.
package enum TestPort {
    private static let claims = Mutex<[Int32]>([])

    /// A port that nobody listens on and that no other process of the tests is given while this one lives.
    ///
    /// It lies below the ports that the kernel gives to outgoing connections. The claim is an abstract Unix socket of the port's name, as
    /// the end-to-end tests make it.
    package static func claim() -> UInt16 {
        while true {
            let port = UInt16.random(in: 10_000..<32_000)
            guard let claim = bound(port) else { continue }
            claims.withLock { $0.append(claim) }
            return port
        }
    }

    private static func bound(_ port: UInt16) -> Int32? {
        let claim = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        let text = Array("\0roost-test-port-\(port)".utf8)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: text) }
        let size = MemoryLayout<sa_family_t>.size + text.count
        guard bind(claim, &name, size), isFree(port) else {
            close(claim)
            return nil
        }
        return claim
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(probe) }
        var yes: Int32 = 1
        setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = loopback(port)
        return bind(probe, &address, MemoryLayout<sockaddr_in>.size)
    }

    package static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        return address
    }

    private static func bind<Address>(_ descriptor: Int32, _ address: inout Address, _ size: Int) -> Bool {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(size)) == 0
            }
        }
    }
}
