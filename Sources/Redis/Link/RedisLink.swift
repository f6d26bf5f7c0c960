package import Glibc

/// What a link tells its owner.
package enum LinkEvent: Sendable, Equatable {
    /// Both connections are there, with one server: commands can be sent, and every message published from now on comes.
    case whole
    /// It cannot be used: after `whole`, and again where an attempt fails for another reason than was told last. Messages may come until
    /// it is whole again, but not all of them.
    case away(RedisFailure)
    case message(channel: String, [UInt8])
    case reply(tag: UInt64, RedisValue)
    /// The link fell before the reply came: the command was done, or it was not. Told right after `away`.
    case lost(tag: UInt64)
    /// The messages' connection has answered a `publishPing`: all that was published before it was asked has come.
    case pong(tag: UInt64)
}

/// Whose a reply is.
enum LinkQuestion {
    case command(UInt64)
    case call(UInt64, ScriptCall)
    case ping(UInt64)
    /// A doubted connection is asked for a sign of life.
    case proof
    case nobody
}

/// Two connections with one Redis, one for commands and one for messages (RESP2 does not mix them), as one link that is whole or away.
///
/// If one of the two falls, the other is asked at once whether it still answers, and the link is away until both are there again. It tries
/// by itself, for ever. Both have to be with one process of a server, or else what is written by the one may never be heard on the other.
///
/// The owner's turn: `poll(into:)`, which also writes what was queued; poll(2) until `deadline` at the latest; `advance`, which needs
/// nothing of what poll reported; then what the events ask for. Belongs to one thread.
package final class RedisLink {
    package typealias Instant = ContinuousClock.Instant

    private let scripts: [RedisScript]
    private let channels: [String]
    private let lookup = HostLookup()
    private let commands: LinkSide
    private let messages: LinkSide
    private let watch: SentinelWatch?
    private var hashes: [RedisScript: String] = [:]
    private var told: RedisFailure?
    package private(set) var isWhole = false

    /// Begins to connect with the first `advance`.
    ///
    /// - Parameters:
    ///   - name: what `CLIENT LIST` shows: no spaces.
    ///   - channels: what is subscribed to.
    ///   - scripts: what `call` may call.
    ///   - random: in 0..<1.
    package init(
        _ address: RedisAddress, name: String, channels: [String], scripts: [RedisScript],
        timeouts: RedisTimeouts = RedisTimeouts(), random: @escaping () -> Double = { .random(in: 0..<1) },
        at now: Instant
    ) {
        self.channels = channels
        self.scripts = scripts
        var first = RedisGreeting(name: name)
        first.own = scripts.map { ["SCRIPT", "LOAD", .text($0.text)] }
        var second = RedisGreeting(name: name)
        second.own = channels.map { ["SUBSCRIBE", .text($0)] }
        second.subscribes = true
        commands = LinkSide(address, first, timeouts, lookup, random: random, at: now)
        messages = LinkSide(address, second, timeouts, lookup, random: random, at: now)
        watch = SentinelWatch(address, client: name, timeouts, lookup, random: random)
    }

    /// The server it is whole with; nothing while it is away.
    package var server: RedisServerIdentity { isWhole ? commands.server : RedisServerIdentity() }

    /// Writes all that was queued since the last turn, and adds what to poll.
    package func poll(into descriptors: inout [pollfd]) {
        for connection in connections {
            connection.flush()
            if let descriptor = connection.descriptor {
                descriptors.append(pollfd(fd: descriptor, events: connection.events, revents: 0))
            } else {
                descriptors.append(pollfd(fd: lookup.descriptor, events: Int16(POLLIN), revents: 0))
            }
        }
    }

    /// When `advance` is due, whatever poll reports.
    package var deadline: Instant? { [commands.deadline, messages.deadline, watch?.deadline].compactMap { $0 }.min() }

    private var connections: [RedisConnection] {
        [commands.connection, messages.connection, watch?.connection].compactMap { $0 }
    }

    /// Queues a command.
    ///
    /// - Parameter tag: comes back with the reply. Replies come in the order of commands.
    /// - Returns: false, and nothing is queued, where the link is away or too much is unanswered (8 MiB).
    package func command(_ command: [RedisArgument], tag: UInt64, at now: Instant) -> Bool {
        isWhole && commands.ask(command, .command(tag), at: now)
    }

    /// Queues the call of a script. Where Redis has forgotten it, it is asked again with the whole text: that reply then comes after those
    /// to commands that were queued meanwhile, so whoever needs an order has one call in flight.
    ///
    /// - Returns: as `command`.
    package func call(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], tag: UInt64, at now: Instant
    ) -> Bool {
        guard isWhole else { return false }
        let call = ScriptCall(script: script, keys: keys, arguments: arguments)
        return commands.ask(hashes[script].map(call.byHash) ?? call.byText, .call(tag, call), at: now)
    }

    /// Asks on the messages' connection: the `pong` comes behind all messages that were published before.
    ///
    /// - Returns: as `command`. A ping that the link falls upon is never answered.
    package func publishPing(tag: UInt64, at now: Instant) -> Bool {
        isWhole && messages.ask(["PING"], .ping(tag), at: now)
    }

    /// Gives both connections up and makes new ones: what is answered is no longer believed.
    package func reconnect(because failure: RedisFailure, at now: Instant) -> [LinkEvent] {
        var events: [LinkEvent] = []
        let asked = Array(commands.questions)
        for side in [commands, messages] { side.drop(failure, at: now) }
        fall(failure, unanswered: asked, at: now, into: &events)
        return events
    }

    /// Goes on with whatever is possible.
    package func advance(at now: Instant) -> [LinkEvent] {
        var events: [LinkEvent] = []
        if connections.contains(where: { $0.descriptor == nil }) { lookup.clear() }
        for side in [messages, commands] {
            var news: [LinkSide.Event] = []
            side.advance(at: now, into: &news)
            for event in news { take(event, of: side, at: now, into: &events) }
        }
        becomeWhole(at: now, into: &events)
        watch?.advance(at: now)
        // What Sentinel said before this connection was made counts less than what it answered then.
        if isWhole, let (named, at) = watch?.named, let (place, since) = commands.place, at > since,
            place != .tcp(named)
        {
            events += reconnect(because: RedisFailure(.sentinel, "Sentinel names another primary: \(named)"), at: now)
        }
        return events
    }

    private func take(_ event: LinkSide.Event, of side: LinkSide, at now: Instant, into events: inout [LinkEvent]) {
        switch event {
        case .ready(let replies):
            guard side === commands else { return }
            hashes = Dictionary(zip(scripts, replies.map { $0.text ?? "" }), uniquingKeysWith: { first, _ in first })
        case .message(let channel, let message):
            guard let name = channels.first(where: { $0.utf8.elementsEqual(channel) }) else { return }
            events.append(.message(channel: name, message))
        case .failed(let failure, let unanswered):
            let others = isWhole ? (side === commands ? messages : commands).doubt(at: now) : []
            fall(failure, unanswered: unanswered + others, at: now, into: &events)
        case .reply(let question, let value):
            switch question {
            case .command(let tag): events.append(.reply(tag: tag, value))
            case .call(let tag, let call):
                if case .error(let text) = value, text.hasPrefix("NOSCRIPT"),
                    commands.ask(call.byText, .command(tag), at: now)
                {
                    return
                }
                events.append(.reply(tag: tag, value))
            case .ping(let tag): events.append(.pong(tag: tag))
            case .proof, .nobody: break
            }
        }
    }

    private func fall(
        _ failure: RedisFailure, unanswered: [LinkQuestion], at now: Instant, into events: inout [LinkEvent]
    ) {
        if isWhole || failure != told { events.append(.away(failure)) }
        told = failure
        isWhole = false
        for question in unanswered {
            switch question {
            case .command(let tag), .call(let tag, _): events.append(.lost(tag: tag))
            case .ping, .proof, .nobody: break
            }
        }
    }

    private func becomeWhole(at now: Instant, into events: inout [LinkEvent]) {
        guard !isWhole, let one = commands.readyAt, let other = messages.readyAt, commands.isProven, messages.isProven
        else { return }
        guard commands.server.runID == messages.server.runID else {
            let failure = RedisFailure(.elsewhere, "the address led to two different servers")
            (one < other ? commands : messages).drop(failure, at: now)
            return fall(failure, unanswered: [], at: now, into: &events)
        }
        isWhole = true
        told = nil
        events.append(.whole)
    }
}
