/// Listens to one Sentinel while a link is whole, and reports when the primary is another server than the link's.
///
/// A primary that is cut off from its Sentinels, or was replaced while frozen, does not end its connections: it keeps
/// accepting writes that no other client will see. Sentinel sends `+switch-master` as soon as it names another primary,
/// and is asked once upon connecting. Confined to one thread.
final class SentinelWatch {
    typealias Instant = ContinuousClock.Instant

    private static let channel = "+switch-master"
    private let address: RedisAddress
    private let endpoints: [RedisAddress.Endpoint]
    private let name: String
    private let client: String
    private let timeouts: RedisTimeouts
    private let lookup: HostLookup
    private let random: () -> Double
    private var next = 0
    private var waitsUntil: Instant?
    private var pause: RetryPause
    /// The primary that Sentinel named last, and when.
    private(set) var named: (RedisAddress.Endpoint, at: Instant)?
    /// The connection to poll, if any.
    private(set) var connection: RedisConnection?

    /// Nil for an address without Sentinel.
    init?(
        _ address: RedisAddress, client: String, _ timeouts: RedisTimeouts, _ lookup: HostLookup,
        random: @escaping () -> Double
    ) {
        guard case .sentinel(let endpoints, let name) = address.place else { return nil }
        self.address = address
        self.endpoints = endpoints
        self.name = name
        self.client = client
        self.timeouts = timeouts
        self.lookup = lookup
        self.random = random
        pause = RetryPause(timeouts)
    }

    var deadline: Instant? { connection?.deadline ?? waitsUntil }

    func makeProgress(at now: Instant) {
        if connection == nil, waitsUntil.map({ now >= $0 }) ?? true { connect(at: now) }
        var events: [RedisConnection.Event] = []
        connection?.makeProgress(at: now, into: &events)
        for event in events {
            switch event {
            case .ready(let replies):
                pause.connectionOpened(at: now)
                if let found = replies.first.flatMap(RedisAddress.Endpoint.init(sentinel:)) { named = (found, at: now) }
            case .message(_, let message):
                if let found = Self.parseSwitch(message, of: name) { named = (found, at: now) }
            case .reply: break
            case .ended:
                connection = nil
                next = (next + 1) % endpoints.count
                waitsUntil = pause.attemptFailed(at: now, random: random())
            }
        }
    }

    private func connect(at now: Instant) {
        var greeting = RedisGreeting(name: client)
        greeting.credentials = address.sentinelCredentials
        greeting.asksIdentity = false
        greeting.subscribes = true
        // A subscribed client may send no further command. Sentinel answers both in one go, with nothing in between.
        greeting.own = [["SENTINEL", "GET-MASTER-ADDR-BY-NAME", .text(name)], ["SUBSCRIBE", .text(Self.channel)]]
        connection = RedisConnection(
            to: .tcp(endpoints[next]), encryption: address.encryption, greeting: greeting, timeouts: timeouts,
            lookup: lookup, at: now)
    }

    /// Parses `NAME OLD-HOST OLD-PORT HOST PORT`.
    private static func parseSwitch(_ message: [UInt8], of name: String) -> RedisAddress.Endpoint? {
        let words = String(decoding: message, as: UTF8.self).split(separator: " ")
        guard words.count == 5, words[0] == name, let port = UInt16(words[4]), port > 0 else { return nil }
        return RedisAddress.Endpoint(host: String(words[3]), port: port)
    }
}

extension RedisAddress.Endpoint {
    /// Parses the answer of `SENTINEL GET-MASTER-ADDR-BY-NAME`; nil if Sentinel knows no such primary.
    init?(sentinel answer: RedisValue) {
        guard let parts = answer.elements, parts.count == 2, let host = parts[0].text, !host.isEmpty,
            let port = parts[1].text.flatMap({ UInt16($0) }), port > 0
        else { return nil }
        self.init(host: host, port: port)
    }
}
