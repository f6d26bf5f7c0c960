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

/// The target as the sockets see it: an address, and the request that opens a WebSocket there.
struct Endpoint {
    let target: Target
    let address: sockaddr_in
    let request: [UInt8]

    init(_ target: Target) throws {
        self.target = target
        request = target.request
        address = try Self.resolve(target.host, target.port)
    }

    /// Loopback takes any 127.x as a source, so that more sockets fit than one address has ports.
    var isLoopback: Bool { UInt32(bigEndian: address.sin_addr.s_addr) >> 24 == 127 }

    /// Whether the host is an address already, which certificates state apart from names.
    var isNamedByAddress: Bool { target.host.allSatisfy { $0.isNumber || $0 == "." } }

    private static func resolve(_ host: String, _ port: UInt16) throws -> sockaddr_in {
        var hints = addrinfo()
        hints.ai_family = AF_INET
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0, let first = list else {
            throw LoadFailure("The host \(host) has no IPv4 address: \(String(cString: gai_strerror(status))).")
        }
        defer { freeaddrinfo(list) }
        return UnsafeRawPointer(first.pointee.ai_addr).loadUnaligned(as: sockaddr_in.self)
    }
}

/// The loopback addresses that sockets come from, each in its turn: 127.0.1.2 and on.
struct SourceAddresses {
    /// An address has 28,000 ports for outgoing connections; those of the last run may still be waiting.
    private static let socketsPerAddress = 10_000
    let count: Int

    /// - Parameter stated: how many were asked for; zero means as many as the sockets need.
    init(stated: Int, sockets: Int) {
        count = stated > 0 ? stated : (sockets + Self.socketsPerAddress - 1) / Self.socketsPerAddress
    }

    subscript(number: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = (0x7F00_0102 as UInt32 + UInt32(number % max(1, count))).bigEndian
        return address
    }
}

/// The limit of open files, which is what caps a process' sockets.
enum FileLimit {
    /// For the poller, the link to the parent, sessions with Postgres and what libraries hold.
    static let spare = 64

    static func allow(_ count: Int) throws {
        var limit = current
        guard limit.rlim_max >= rlim_t(count) else {
            throw LoadFailure(
                "\(count) open files are needed in one process, which may have \(limit.rlim_max) (ulimit -Hn); "
                    + "more --workers share them.")
        }
        limit.rlim_cur = limit.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw LoadFailure.system("Raising the limit of open files")
        }
    }

    /// How many sockets one worker can hold.
    static var socketsPerProcess: Int { max(1, Int(min(current.rlim_max, 1 << 20)) - spare) }

    private static var current: rlimit {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return limit
    }
}
