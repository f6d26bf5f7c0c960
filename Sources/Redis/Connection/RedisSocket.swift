import CTLSClient
import Glibc

/// A socket that never blocks, plain or with TLS. Its owner polls it. Confined to one thread; closed on deinit.
final class RedisSocket {
    /// The outcome of a step.
    enum Outcome {
        case moved(Int)
        /// Nothing can move until poll reports these events.
        case waits(Int16)
        case ended(RedisFailure)
    }

    let descriptor: Int32
    private var tls: OpaquePointer?

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit {
        roost_tls_free(tls)
        close(descriptor)
    }

    /// Starts to connect; `finishConnecting` returns the outcome once poll reports POLLOUT.
    static func startConnecting(
        to address: HostLookup.SocketAddress, acknowledgement: Duration
    ) throws(RedisFailure) -> RedisSocket {
        let descriptor = socket(
            address.family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw RedisFailure(.refused, "no socket can be made: \(errorText(errno))") }
        let made = RedisSocket(descriptor)
        if address.family != AF_UNIX {
            made.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
            made.setOption(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(acknowledgement / .milliseconds(1)))
            made.setOption(SOL_SOCKET, SO_KEEPALIVE, 1)
        }
        let status = address.bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return Int32(-1) }
            return connect(descriptor, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        if status != 0, errno != EINPROGRESS { throw Self.notConnected(errno) }
        return made
    }

    /// The address of a Unix domain socket; nil if the path is too long.
    static func unixAddress(_ path: String) -> HostLookup.SocketAddress? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            guard path.utf8.count < bytes.count else { return false }
            bytes.copyBytes(from: path.utf8)
            return true
        }
        return fits
            ? HostLookup.SocketAddress(family: AF_UNIX, bytes: withUnsafeBytes(of: address) { [UInt8]($0) }) : nil
    }

    /// Returns whether the socket is connected.
    func finishConnecting() throws(RedisFailure) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&polled, 1, 0) > 0 else { return false }
        var error: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size)
        if error != 0 { throw Self.notConnected(error) }
        // Within one machine, TCP can connect a socket to itself: a port without a listener can be the one that the
        // kernel gave this socket.
        if let own = socketName(getsockname), own == socketName(getpeername), own.first != UInt8(AF_UNIX) {
            throw Self.notConnected(ECONNREFUSED)
        }
        return true
    }

    /// Switches to TLS; the handshake must be completed before anything else.
    func startTLS(host: String, _ encryption: RedisAddress.Encryption) throws(RedisFailure) {
        var problem = [CChar](repeating: 0, count: Int(ROOST_TLS_PROBLEM_SIZE))
        tls = roost_tls_create(descriptor, host, encryption.authorities, encryption.verifies, &problem)
        if tls == nil { throw RedisFailure(.certificate, Self.problemText(problem)) }
    }

    /// Moves 0 bytes when done.
    func continueHandshake() -> Outcome {
        guard let tls else { return .moved(0) }
        var problem = [CChar](repeating: 0, count: Int(ROOST_TLS_PROBLEM_SIZE))
        return tlsOutcome(Int(roost_tls_handshake(tls, &problem)), problem)
    }

    func readBytes(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        if let tls {
            var problem = [CChar](repeating: 0, count: Int(ROOST_TLS_PROBLEM_SIZE))
            return tlsOutcome(roost_tls_read(tls, buffer.baseAddress, buffer.count, &problem), problem)
        }
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count > 0 { return .moved(count) }
        if count == 0 { return .ended(Self.closed) }
        return ioFailure(errno, waiting: POLLIN)
    }

    func writeBytes(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        if let tls {
            var problem = [CChar](repeating: 0, count: Int(ROOST_TLS_PROBLEM_SIZE))
            return tlsOutcome(roost_tls_write(tls, bytes.baseAddress, bytes.count, &problem), problem)
        }
        let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        return count >= 0 ? .moved(count) : ioFailure(errno, waiting: POLLOUT)
    }

    var isEncrypted: Bool { tls != nil }

    /// Whether bytes are pending that poll does not see.
    var hasPending: Bool { tls.map { roost_tls_has_pending($0) } ?? false }

    private func tlsOutcome(_ result: Int, _ problem: [CChar]) -> Outcome {
        switch result {
        case 0...: .moved(result)
        case Int(ROOST_TLS_WANTS_READ.rawValue): .waits(Int16(POLLIN))
        case Int(ROOST_TLS_WANTS_WRITE.rawValue): .waits(Int16(POLLOUT))
        case Int(ROOST_TLS_CLOSED.rawValue): .ended(Self.closed)
        default: .ended(RedisFailure(.certificate, Self.problemText(problem)))
        }
    }

    private func ioFailure(_ number: Int32, waiting events: Int32) -> Outcome {
        if number == EAGAIN || number == EINTR { return .waits(Int16(events)) }
        return .ended(RedisFailure(.cut, "the connection was cut: \(errorText(number))"))
    }

    private static let closed = RedisFailure(.cut, "Redis closed the connection")

    private static func notConnected(_ number: Int32) -> RedisFailure {
        let isLate = number == ETIMEDOUT
        return RedisFailure(isLate ? .unanswered : .refused, "the connection was not accepted: \(errorText(number))")
    }

    private func setOption(_ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private func socketName(
        _ function: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> [UInt8]? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            guard let start = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                function(descriptor, start, &size) == 0
            else { return nil }
            return [UInt8](bytes.prefix(Int(size)))
        }
    }

    private static func problemText(_ problem: [CChar]) -> String {
        String(decoding: problem.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

private func errorText(_ number: Int32) -> String { String(cString: strerror(number)) }
