import Glibc

/// The kernel's limits for a server with many sockets, from `/proc/sys` (ip(7), tcp(7), the kernel's
/// Documentation/networking/ip-sysctl and admin-guide/sysctl/net).
package struct KernelSettings: Sendable {
    /// `net.core.somaxconn`: the most connections that wait to be accepted.
    private let acceptQueue: Int?
    /// `net.ipv4.tcp_max_syn_backlog`: the most connections in the handshake.
    private let synBacklog: Int?
    /// `net.ipv4.ip_local_port_range`: the local ports of outgoing connections.
    private let ports: ClosedRange<Int>?
    /// `net.ipv4.tcp_mem`: the limit of memory for all TCP sockets together, in pages.
    private let pages: Int?

    /// Missing settings are skipped: containers hide parts of `/proc/sys`.
    ///
    /// - Parameter folder: replaces `/proc/sys`.
    package init(folder: String = "/proc/sys") {
        func numbers(_ name: String) -> [Int] {
            guard let file = fopen("\(folder)/\(name)", "r") else { return [] }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = fread(&bytes, 1, bytes.count, file)
            return String(decoding: bytes.prefix(count), as: UTF8.self).split(whereSeparator: \.isWhitespace)
                .compactMap { Int($0) }
        }
        acceptQueue = numbers("net/core/somaxconn").first
        synBacklog = numbers("net/ipv4/tcp_max_syn_backlog").first
        let range = numbers("net/ipv4/ip_local_port_range")
        ports = range.count == 2 && range[0] <= range[1] ? range[0]...range[1] : nil
        let memory = numbers("net/ipv4/tcp_mem")
        pages = memory.count == 3 ? memory[2] : nil
    }

    /// Recommended changes, a sentence each.
    ///
    /// - Parameters:
    ///   - sockets: the greatest number of sockets.
    ///   - isChosen: whether the operator has set that number; otherwise it follows from the limit of open files.
    package func advice(sockets: Int, isChosen: Bool) -> [String] {
        [
            queueAdvice("net.core.somaxconn", acceptQueue), queueAdvice("net.ipv4.tcp_max_syn_backlog", synBacklog),
            isChosen ? portAdvice(sockets) : nil, memoryAdvice(sockets),
        ].compactMap { $0 }
    }

    /// After a deploy or an outage all clients return at once; those that find the queue full return a second later.
    private static let queue = 1024
    /// A socket with data to send or to read costs at least a page.
    private static let bytesPerSocket = 4096

    private func queueAdvice(_ name: String, _ value: Int?) -> String? {
        guard let value, value < Self.queue else { return nil }
        return "\(name) is \(value), so when many clients come back at once, some wait for seconds; run `sysctl -w "
            + "\(name)=4096`, and write it to /etc/sysctl.d."
    }

    private func portAdvice(_ sockets: Int) -> String? {
        guard let ports, ports.count < sockets else { return nil }
        return "net.ipv4.ip_local_port_range has \(ports.count) ports, so a proxy on this machine cannot pass on "
            + "limits.connections = \(sockets) to one address; run `sysctl -w net.ipv4.ip_local_port_range=\"1024 "
            + "65535\"`, or have it use http.host on several addresses."
    }

    private func memoryAdvice(_ sockets: Int) -> String? {
        guard let pages else { return nil }
        let bytes = pages * Int(sysconf(Int32(_SC_PAGESIZE)))
        guard bytes / Self.bytesPerSocket < sockets else { return nil }
        return "net.ipv4.tcp_mem allows \(bytes / 1_048_576) MB for all sockets, too little if all \(sockets) have "
            + "something to send; raise its last number, or lower limits.connections."
    }
}
