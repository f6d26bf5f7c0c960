import Glibc

/// Makes non-blocking connections to the hub, from many loopback addresses where there are many.
struct Dialer {
    /// An address has 28,000 ports for outgoing connections; those of the last run may still be waiting.
    private static let socketsPerAddress = 10_000
    let endpoint: Endpoint

    func dial(_ index: Int) throws -> Int32 {
        let descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw LoadFailure.system("Opening socket \(index)") }
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
        if endpoint.isLoopback {
            // Leaves the choice of the port to connect(), which knows that ports may be shared between targets.
            set(descriptor, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT)
            var source = Self.source(index / Self.socketsPerAddress)
            try call(&source, "Binding socket \(index)") { bind(descriptor, $0, $1) }
        }
        var target = endpoint.address
        try call(&target, "Connecting socket \(index)") { connect(descriptor, $0, $1) }
        return descriptor
    }

    /// Why a connection that was under way failed; nil when it stands.
    func failure(of descriptor: Int32) -> LoadFailure? {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        return code == 0 ? nil : .system("Connecting to the hub", code)
    }

    /// 127.0.1.2 and on.
    private static func source(_ number: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = (0x7F00_0102 as UInt32 + UInt32(number)).bigEndian
        return address
    }

    private func set(_ descriptor: Int32, _ level: Int32, _ option: Int32) {
        var one: Int32 = 1
        setsockopt(descriptor, level, option, &one, socklen_t(MemoryLayout<Int32>.size))
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
