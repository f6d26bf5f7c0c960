package import Glibc

/// An event of a link, for its owner.
package enum LinkEvent: Sendable, Equatable {
    /// Both connections are up, with the same server: commands can be sent, and every message published from now on arrives.
    case whole
    /// The link cannot be used: reported after `whole`, and again whenever an attempt fails for another reason than the
    /// last one reported. Some messages may still arrive before it is whole again, but not all.
    case away(RedisFailure)
    case message(channel: String, [UInt8])
    case reply(tag: UInt64, RedisValue)
    /// The link failed before the reply came: the command may have run or not. Reported right after `away`.
    case lost(tag: UInt64)
    /// The messages' connection has answered a `publishPing`: everything published before it was sent has arrived.
    case pong(tag: UInt64)
}

/// The request that a reply answers.
enum LinkQuestion {
    case command(UInt64)
    case call(UInt64, ScriptCall)
    case ping(UInt64)
    /// A sign of life from a doubted connection.
    case proof
    case nobody
}

/// Two connections with one Redis, one for commands and one for messages (RESP2 does not mix them), as one link that is whole or away.
///
/// If one of them fails, the other is tested at once, and the link is away until both are up again. It keeps trying on
/// its own. Both must be with the same server process, or messages published through one may never arrive on the other.
///
/// The owner's turn: prepare the poll, which also writes queued commands; poll(2) until `deadline` at the latest; make
/// progress, which needs none of poll's results; then handle the events. Confined to one thread.
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

    /// Starts to connect with the first turn.
    ///
    /// - Parameters:
    ///   - name: the name in `CLIENT LIST`: no spaces.
    ///   - channels: the channels to subscribe to.
    ///   - scripts: the scripts that may be called.
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

    /// The server of the link; empty while it is away.
    package var server: RedisServerIdentity { isWhole ? commands.server : RedisServerIdentity() }

    /// Writes everything queued since the last turn, and adds the descriptors to poll.
    package func preparePoll(into descriptors: inout [pollfd]) {
        for connection in connections {
            connection.flush()
            if let descriptor = connection.descriptor {
                descriptors.append(pollfd(fd: descriptor, events: connection.events, revents: 0))
            } else {
                descriptors.append(pollfd(fd: lookup.descriptor, events: Int16(POLLIN), revents: 0))
            }
        }
    }

    /// When the next progress is due, whatever poll reports.
    package var deadline: Instant? { [commands.deadline, messages.deadline, watch?.deadline].compactMap { $0 }.min() }

    private var connections: [RedisConnection] {
        [commands.connection, messages.connection, watch?.connection].compactMap { $0 }
    }

    /// Queues a command.
    ///
    /// - Parameter tag: returned with the reply. Replies come in the order of commands.
    /// - Returns: false, with nothing queued, if the link is away or too much is unanswered (8 MiB).
    package func queueCommand(_ command: [RedisArgument], tag: UInt64, at now: Instant) -> Bool {
        isWhole && commands.sendCommand(command, .command(tag), at: now)
    }

    /// Queues a call of a script. If Redis has forgotten the script, the call is repeated with its whole text: that reply
    /// then comes after those of commands queued meanwhile, so a caller that needs an order keeps one call in flight.
    ///
    /// - Returns: as for commands.
    package func queueCall(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], tag: UInt64, at now: Instant
    ) -> Bool {
        guard isWhole else { return false }
        let call = ScriptCall(script: script, keys: keys, arguments: arguments)
        return commands.sendCommand(hashes[script].map(call.byHash) ?? call.byText, .call(tag, call), at: now)
    }

    /// Sends a ping on the messages' connection: the `pong` comes after all messages published before.
    ///
    /// - Returns: as for commands. A ping is never answered if the link fails.
    package func publishPing(tag: UInt64, at now: Instant) -> Bool {
        isWhole && messages.sendCommand(["PING"], .ping(tag), at: now)
    }

    /// Gives both connections up and makes new ones, because their answers are no longer trusted.
    package func reconnect(because failure: RedisFailure, at now: Instant) -> [LinkEvent] {
        var events: [LinkEvent] = []
        let asked = Array(commands.questions)
        for side in [commands, messages] { side.dropConnection(failure, at: now) }
        reportAway(failure, unanswered: asked, at: now, into: &events)
        return events
    }

    /// Makes whatever progress is possible.
    package func makeProgress(at now: Instant) -> [LinkEvent] {
        var events: [LinkEvent] = []
        if connections.contains(where: { $0.descriptor == nil }) { lookup.clearSignal() }
        for side in [messages, commands] {
            var news: [LinkSide.Event] = []
            side.makeProgress(at: now, into: &news)
            for event in news { handleSideEvent(event, of: side, at: now, into: &events) }
        }
        becomeWhole(at: now, into: &events)
        watch?.makeProgress(at: now)
        // Anything Sentinel said before this connection was made counts less than its answer then.
        if isWhole, let (named, at) = watch?.named, let (place, since) = commands.place, at > since,
            place != .tcp(named)
        {
            events += reconnect(because: RedisFailure(.sentinel, "Sentinel names another primary: \(named)"), at: now)
        }
        return events
    }

    private func handleSideEvent(
        _ event: LinkSide.Event, of side: LinkSide, at now: Instant, into events: inout [LinkEvent]
    ) {
        switch event {
        case .ready(let replies):
            guard side === commands else { return }
            hashes = Dictionary(zip(scripts, replies.map { $0.text ?? "" }), uniquingKeysWith: { first, _ in first })
        case .message(let channel, let message):
            guard let name = channels.first(where: { $0.utf8.elementsEqual(channel) }) else { return }
            events.append(.message(channel: name, message))
        case .failed(let failure, let unanswered):
            let others = isWhole ? (side === commands ? messages : commands).probeConnection(at: now) : []
            reportAway(failure, unanswered: unanswered + others, at: now, into: &events)
        case .reply(let question, let value):
            switch question {
            case .command(let tag): events.append(.reply(tag: tag, value))
            case .call(let tag, let call):
                if case .error(let text) = value, text.hasPrefix("NOSCRIPT"),
                    commands.sendCommand(call.byText, .command(tag), at: now)
                {
                    return
                }
                events.append(.reply(tag: tag, value))
            case .ping(let tag): events.append(.pong(tag: tag))
            case .proof, .nobody: break
            }
        }
    }

    private func reportAway(
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
            (one < other ? commands : messages).dropConnection(failure, at: now)
            return reportAway(failure, unanswered: [], at: now, into: &events)
        }
        isWhole = true
        told = nil
        events.append(.whole)
    }
}
