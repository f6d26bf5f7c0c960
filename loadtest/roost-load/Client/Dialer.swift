import Glibc

/// Makes non-blocking connections to the target.
struct Dialer {
    let endpoint: Endpoint
    let sources: SourceAddresses

    /// - Parameters:
    ///   - number: which of all sockets, which decides about its source.
    ///   - room: of the buffer that it receives into, in bytes; nil leaves it to the system.
    func dial(_ number: Int, room: Int? = nil) throws -> Int32 {
        let descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw LoadFailure.system("Opening socket \(number)") }
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
        if let room { set(descriptor, SOL_SOCKET, SO_RCVBUF, Int32(room)) }
        if endpoint.isLoopback {
            // Leaves the choice of the port to connect(), which knows that ports may be shared between targets.
            set(descriptor, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT)
            var source = sources[number]
            try call(&source, "Binding socket \(number)") { bind(descriptor, $0, $1) }
        }
        var target = endpoint.address
        try call(&target, "Connecting socket \(number)") { connect(descriptor, $0, $1) }
        return descriptor
    }

    /// Why a connection that was under way failed; nil when it stands.
    func failure(of descriptor: Int32) -> String? {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        return code == 0 ? nil : String(cString: strerror(code))
    }

    private func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32 = 1) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private func call(
        _ address: inout sockaddr_in, _ doing: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws {
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if status < 0, errno != EINPROGRESS { throw LoadFailure.system(doing) }
    }
}
