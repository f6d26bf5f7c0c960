import Glibc

/// Tells systemd how the service fares, by datagrams to the socket that `NOTIFY_SOCKET` names.
///
/// The protocol is lines of `NAME=VALUE`, and promised to stay as it is (sd_notify(3), Notes), so no library is needed.
package struct SystemdNotifier: Sendable {
    /// As `sun_path` has it: a path ends with a zero, an abstract name begins with one (unix(7)).
    private let name: [UInt8]
    /// Open for as long as the process lives: one that has run out of files can still say that it is alive.
    private let socket: Int32

    /// The sentence says what becomes of it.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Nil where no service manager asked to be told.
    package init?(environment: [String: String]) throws(Failure) {
        guard let text = environment["NOTIFY_SOCKET"], !text.isEmpty else { return nil }
        switch text.first {
        case "/": name = Array(text.utf8) + [0]
        case "@": name = [0] + text.utf8.dropFirst()
        default: throw Failure(description: "NOTIFY_SOCKET is \(text), which is neither a path nor an @ and a name")
        }
        guard name.count <= MemoryLayout.size(ofValue: sockaddr_un().sun_path) else {
            throw Failure(description: "NOTIFY_SOCKET is longer than the name of a socket may be: \(text)")
        }
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw Failure(description: "there is no socket for it: \(Self.reason)") }
        // A manager that takes nothing must not hold up who tells it.
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout.size(ofValue: patience)))
    }

    /// Waits for a second at most.
    ///
    /// - Parameter lines: as `READY=1`.
    package func send(_ lines: [String]) throws(Failure) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // An abstract name is as long as the address says, and zeros count.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let message = Array(lines.joined(separator: "\n").utf8)
        var sent: Int
        repeat {
            sent = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(socket, message, message.count, Int32(MSG_NOSIGNAL), $0, length)
                }
            }
        } while sent < 0 && errno == EINTR
        guard sent == message.count else { throw Failure(description: Self.reason) }
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
