import Glibc

/// The steps to a connected socket: looks up the host's addresses and tries them in turn, then negotiates TLS if required.
///
/// Never waits; each call makes whatever progress is possible. Confined to one thread.
final class SocketOpening {
    typealias Instant = ContinuousClock.Instant

    private enum State {
        case lookingUp
        /// The socket, and until when this address is tried.
        case connecting(RedisSocket, Instant)
        case securing(RedisSocket, Instant)
    }

    private let place: RedisAddress.Place
    private let encryption: RedisAddress.Encryption?
    private let timeouts: RedisTimeouts
    private let lookup: HostLookup
    private let startedAt: Instant
    private var state = State.lookingUp
    private var addresses: [HostLookup.SocketAddress] = []
    private var waitsFor = Int16(POLLOUT)
    private var wasAdvanced = false

    init(
        _ place: RedisAddress.Place, _ encryption: RedisAddress.Encryption?, _ timeouts: RedisTimeouts,
        _ lookup: HostLookup, at now: Instant
    ) {
        self.place = place
        self.encryption = encryption
        self.timeouts = timeouts
        self.lookup = lookup
        startedAt = now
    }

    /// The descriptor to poll; nil during a name look-up.
    var descriptor: Int32? {
        switch state {
        case .lookingUp: nil
        case .connecting(let socket, _), .securing(let socket, _): socket.descriptor
        }
    }

    var events: Int16 { if case .securing = state { waitsFor } else { Int16(POLLOUT) } }

    var deadline: Instant {
        switch state {
        case .lookingUp: wasAdvanced ? startedAt + timeouts.connect : startedAt
        case .connecting(_, let limit), .securing(_, let limit): limit
        }
    }

    /// - Returns: the socket once it is usable.
    func makeProgress(at now: Instant) throws(RedisFailure) -> RedisSocket? {
        wasAdvanced = true
        if case .lookingUp = state { try lookUp(at: now) }
        if case .connecting(let socket, let limit) = state {
            guard try checkConnected(socket, until: limit, at: now) else { return nil }
            guard let encryption, case .tcp(let endpoint) = place else { return socket }
            try socket.startTLS(host: endpoint.host, encryption)
            state = .securing(socket, now + timeouts.silence)
        }
        guard case .securing(let socket, let limit) = state else { return nil }
        switch socket.continueHandshake() {
        case .moved: return socket
        case .waits(let events): waitsFor = events
        case .ended(let failure): throw failure
        }
        if now >= limit {
            throw RedisFailure(.silent, "TLS was not answered in time: is this the port on which Redis speaks TLS?")
        }
        return nil
    }

    private func lookUp(at now: Instant) throws(RedisFailure) {
        switch place {
        case .unix(let path):
            guard let address = RedisSocket.unixAddress(path) else {
                throw RedisFailure(.refused, "the path of the Unix socket is too long")
            }
            addresses = [address]
        case .tcp(let endpoint):
            switch lookup.addresses(of: endpoint, at: now) {
            case .addresses(let found): addresses = found
            case .failed(let why): throw RedisFailure(.refused, "the host's name has no address: \(why)")
            case .notYet:
                guard now < startedAt + timeouts.connect else {
                    throw RedisFailure(.unanswered, "the host's name was not looked up in time")
                }
                return
            }
        case .sentinel: preconditionFailure("a connection is with one server")
        }
        try connectToNext(at: now, after: RedisFailure(.refused, "the host's name has no address"))
    }

    /// Tries the addresses one after the other; those that are left share the remaining time.
    private func connectToNext(at now: Instant, after failure: RedisFailure) throws(RedisFailure) {
        var failure = failure
        while !addresses.isEmpty {
            let share = (startedAt + timeouts.connect - now) / addresses.count
            let address = addresses.removeFirst()
            do throws(RedisFailure) {
                let socket = try RedisSocket.startConnecting(to: address, acknowledgement: timeouts.acknowledgement)
                state = .connecting(socket, now + max(share, .milliseconds(1)))
                return
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// - Returns: whether the socket is connected.
    private func checkConnected(
        _ socket: RedisSocket, until limit: Instant, at now: Instant
    ) throws(RedisFailure) -> Bool {
        do throws(RedisFailure) {
            if try socket.finishConnecting() { return true }
            if now < limit { return false }
            throw RedisFailure(.unanswered, "there is no answer in time")
        } catch {
            try connectToNext(at: now, after: error)
            return false
        }
    }
}
