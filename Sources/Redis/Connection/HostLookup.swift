import Glibc
import Synchronization
import Workers

/// Looks up the addresses of host names on its own thread, because a look-up may wait for the network indefinitely.
///
/// The thread starts with the first name that is not an IP address. One look-up runs at a time, and a repeated request for the same name
/// joins the running one. If a look-up outlasts its caller's patience, the result is kept for the next attempt, for a while. Thread-safe.
package final class HostLookup: Sendable {
    /// An address in the form that connect(2) takes.
    package struct SocketAddress: Sendable, Equatable {
        let family: Int32
        let bytes: [UInt8]
    }

    package enum Answer: Sendable, Equatable {
        case addresses([SocketAddress])
        case failed(String)
        /// `descriptor` becomes readable once the answer is there.
        case notYet
    }

    private struct Content: Sendable {
        var wanted: RedisAddress.Endpoint?
        var isRunning: RedisAddress.Endpoint?
        var found: [RedisAddress.Endpoint: (answer: Answer, at: ContinuousClock.Instant)] = [:]
        var isStopping = false
    }

    /// How long a result is valid: for one attempt to connect, and no more, because a name may move with its service.
    private static let validity = Duration.seconds(2)
    private static let capacity = 16
    private let mailbox = WorkerMailbox(Content())
    private let news = EventDescriptor()
    private let thread = WorkerThread(named: "roost-names")

    package init() {}

    /// The thread ends with its current look-up; it is not joined.
    deinit { mailbox.post { $0.isStopping = true } }

    /// Readable when a look-up that returned `notYet` has ended.
    package var descriptor: Int32 { news.descriptor }

    package func clearSignal() { news.clear() }

    /// Requests a host's addresses; never waits.
    package func addresses(of endpoint: RedisAddress.Endpoint, at now: ContinuousClock.Instant) -> Answer {
        if case .addresses(let numeric) = Self.resolveHost(endpoint, flags: AI_NUMERICHOST) {
            return .addresses(numeric)
        }
        let known: Answer? = mailbox.withContent { content in
            guard let found = content.found[endpoint] else { return nil }
            if now - found.at > Self.validity {
                content.found[endpoint] = nil
                return nil
            }
            // A failure is reported once; the next attempt looks the name up again.
            if case .failed = found.answer { content.found[endpoint] = nil }
            return found.answer
        }
        if let known { return known }
        if !thread.wasStarted { startThread() }
        mailbox.post { content in if content.isRunning != endpoint { content.wanted = endpoint } }
        return .notYet
    }

    private func startThread() {
        let (mailbox, news) = (mailbox, news)
        thread.start {
            while true {
                mailbox.wait(until: nil)
                let (wanted, isStopping) = mailbox.takeMail { content in
                    content.isRunning = content.wanted
                    content.wanted = nil
                    return (content.isRunning, content.isStopping)
                }
                if isStopping { return }
                guard let wanted else { continue }
                let answer = Self.resolveHost(wanted, flags: AI_ADDRCONFIG)
                mailbox.withContent { content in
                    content.isRunning = nil
                    if content.found.count >= Self.capacity { content.found.removeAll() }
                    content.found[wanted] = (answer, .now)
                }
                news.signal()
            }
        }
    }

    private static func resolveHost(_ endpoint: RedisAddress.Endpoint, flags: Int32) -> Answer {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(endpoint.host, String(endpoint.port), &hints, &list)
        guard status == 0 else { return .failed(String(cString: gai_strerror(status))) }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var entry = list
        while let info = entry?.pointee {
            let bytes = UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen))
            addresses.append(SocketAddress(family: info.ai_family, bytes: [UInt8](bytes)))
            entry = info.ai_next
        }
        return .addresses(addresses)
    }
}
