import DequeModule
import Glibc

/// One connection to one server: it never blocks, notices every end, and says why.
///
/// Its owner polls `descriptor` for `events` until `deadline`, lets the connection make progress, handles the events,
/// and calls `flush`, which writes all commands of the turn at once. Replies come in the order of the commands. A
/// subscribed connection accepts only `PING`, and messages come between its replies. Confined to one thread.
package final class RedisConnection {
    package typealias Instant = ContinuousClock.Instant

    enum Event {
        /// The whole greeting was answered; carries the replies to its `commands`.
        case ready([RedisValue])
        case reply(RedisValue)
        case message(channel: [UInt8], [UInt8])
        /// The last event.
        case ended(RedisFailure)
    }

    private enum Purpose {
        case greeting(RedisGreeting.Step)
        case ping
        case command
    }

    private struct Question {
        let purpose: Purpose
        let askedAt: Instant
        let size: Int
    }

    private enum State {
        case opening(SocketOpening)
        case greeting
        case ready
        case ended
    }

    /// The limit of unanswered commands in bytes, including those not yet written.
    static let capacity = 8 << 20
    private static let readsInOneTurn = 16
    private static let readSize = 64 << 10

    private let timeouts: RedisTimeouts
    private let startedAt: Instant
    private var greeting: RedisGreeting
    private var state: State
    private var socket: RedisSocket?
    private var waitsFor = Int16(POLLOUT)
    private let reader = ReplyReader()
    private var input = [UInt8](repeating: 0, count: readSize)
    private var output: [UInt8] = []
    private var written = 0
    private var questions: Deque<Question> = []
    private var unanswered = 0
    private var lastByteAt: Instant
    /// Why a write failed; kept until everything the server sent before is read.
    private var writeFailure: RedisFailure?
    private var mayHaveMore = false

    /// The server's identity from its answer to the greeting; empty before that.
    var server: RedisServerIdentity { greeting.identity }

    /// Starts to connect.
    ///
    /// - Parameter place: not a Sentinel, which has no data.
    init(
        to place: RedisAddress.Place, encryption: RedisAddress.Encryption?, greeting: RedisGreeting,
        timeouts: RedisTimeouts, lookup: HostLookup, at now: Instant
    ) {
        self.greeting = greeting
        self.timeouts = timeouts
        startedAt = now
        lastByteAt = now
        state = .opening(SocketOpening(place, encryption, timeouts, lookup, at: now))
    }

    var isReady: Bool { if case .ready = state { true } else { false } }

    /// The descriptor to poll; nil during a name look-up, and after the end.
    var descriptor: Int32? {
        if case .opening(let opening) = state { opening.descriptor } else { socket?.descriptor }
    }

    var events: Int16 {
        switch state {
        case .opening(let opening): opening.events
        // TLS may have to read before it can write; then waiting to write gains nothing.
        case .greeting, .ready: Int16(POLLIN) | (written < output.count ? waitsFor & Int16(POLLOUT) : 0)
        case .ended: 0
        }
    }

    /// When progress is due at the latest, whatever poll reports.
    var deadline: Instant? {
        switch state {
        case .ended: return nil
        case .opening(let opening): return opening.deadline
        case .greeting, .ready:
            if mayHaveMore || writeFailure != nil { return startedAt }
            guard let deadAt else { return pingAt }
            return isReady ? deadAt : min(deadAt, startedAt + timeouts.setUp)
        }
    }

    /// When an unanswered server counts as dead: counted from the last byte, but at least as long as a ping would have had.
    private var deadAt: Instant? {
        guard let first = questions.first else { return nil }
        return max(lastByteAt, first.askedAt - timeouts.ping) + timeouts.silence
    }

    private var pingAt: Instant { lastByteAt + timeouts.ping }

    /// Queues a command.
    ///
    /// - Returns: false, with nothing queued, before the connection is ready, after its end, and if too much is unanswered.
    func sendCommand(_ command: [RedisArgument], at now: Instant) -> Bool {
        let size = command.commandSize
        guard isReady, unanswered + size <= Self.capacity else { return false }
        queueCommand(command, .command, size: size, at: now)
        return true
    }

    private func queueCommand(_ command: [RedisArgument], _ purpose: Purpose, size: Int = 0, at now: Instant) {
        questions.append(Question(purpose: purpose, askedAt: now, size: size))
        unanswered += size
        command.encode(into: &output)
    }

    /// Makes whatever progress is possible, and reports the outcome.
    func makeProgress(at now: Instant, into events: inout [Event]) {
        do {
            if case .opening(let opening) = state, let opened = try opening.makeProgress(at: now) {
                sendGreeting(on: opened, at: now)
            }
            switch state {
            case .greeting, .ready:
                try readInput(at: now, into: &events)
                try judgeSilence(at: now)
            default: break
            }
            flush()
        } catch {
            endConnection(error, into: &events)
        }
    }

    private func sendGreeting(on opened: RedisSocket, at now: Instant) {
        socket = opened
        lastByteAt = now
        state = .greeting
        for (step, command) in greeting.commands { queueCommand(command, .greeting(step), at: now) }
    }

    // MARK: Reading

    private func readInput(at now: Instant, into events: inout [Event]) throws(RedisFailure) {
        guard let socket else { return }
        mayHaveMore = false
        for _ in 0..<Self.readsInOneTurn {
            switch input.withUnsafeMutableBytes({ socket.readBytes(into: $0) }) {
            case .moved(let count):
                lastByteAt = now
                try parseInput(count, at: now, into: &events)
                if count < Self.readSize, !socket.hasPending, !socket.isEncrypted { return }
            case .waits(let events):
                if let writeFailure { throw writeFailure }
                if events & Int16(POLLOUT) != 0 { waitsFor = events }
                return
            case .ended(let failure): throw failure
            }
        }
        mayHaveMore = true
    }

    private func parseInput(_ count: Int, at now: Instant, into events: inout [Event]) throws(RedisFailure) {
        var taken = 0
        while taken < count {
            let piece = min(count - taken, ReplyReader.pieceSize)
            // Not thrown inside the closure, which cannot throw a typed error.
            let problem = input.withUnsafeBytes { bytes -> RedisFailure? in
                do throws(RedisFailure) {
                    try reader.feedBytes(UnsafeRawBufferPointer(rebasing: bytes[taken..<taken + piece]))
                    return nil
                } catch { return error }
            }
            if let problem { throw problem }
            taken += piece
            while let value = try reader.nextReply() { try receiveReply(value, at: now, into: &events) }
        }
    }

    private func receiveReply(_ value: RedisValue, at now: Instant, into events: inout [Event]) throws(RedisFailure) {
        if greeting.subscribes, case .array(let parts) = value, parts.count == 3, parts[0] == Self.message,
            case .bytes(let channel) = parts[1], case .bytes(let message) = parts[2]
        {
            events.append(.message(channel: channel, message))
            return
        }
        guard let question = questions.popFirst() else {
            // A server that refuses a client says so before any request.
            if case .error(let text) = value { throw RedisFailure.ofSetUp(text) }
            throw .protocolError("it sent an answer to no question")
        }
        unanswered -= question.size
        switch question.purpose {
        case .command:
            events.append(.reply(value))
            if case .error(let text) = value, let failure = RedisFailure.ofConnection(text) { throw failure }
        case .ping:
            if case .error(let text) = value { throw RedisFailure.ofSetUp(text) }
        case .greeting(let step): try greeting.takeReply(value, of: step)
        }
        if case .greeting = state, questions.isEmpty {
            state = .ready
            events.append(.ready(greeting.replies))
        }
    }

    private static let message = RedisValue.bytes(Array("message".utf8))

    // MARK: Silence

    private func judgeSilence(at now: Instant) throws(RedisFailure) {
        if !isReady, now >= startedAt + timeouts.setUp {
            throw RedisFailure(.unanswered, "Redis was not ready in time")
        }
        if let deadAt {
            if now >= deadAt, !mayHaveMore { throw RedisFailure(.silent, "Redis does not answer any more") }
        } else if now >= pingAt {
            queueCommand(["PING"], .ping, at: now)
        }
    }

    // MARK: Writing

    /// Writes queued commands. A failure is reported on the next progress, after everything the server said before.
    func flush() {
        guard let socket, writeFailure == nil else { return }
        switch state {
        case .greeting, .ready: break
        default: return
        }
        while written < output.count {
            let outcome = output.withUnsafeBytes { socket.writeBytes(UnsafeRawBufferPointer(rebasing: $0[written...])) }
            switch outcome {
            case .moved(let count): written += count
            case .waits(let events):
                waitsFor = events
                // Even if the other side never catches up, bytes it has taken do not stay here.
                if written >= 1 << 20 {
                    output.removeFirst(written)
                    written = 0
                }
                return
            case .ended(let failure):
                writeFailure = failure
                return
            }
        }
        guard written > 0 else { return }
        output.removeAll(keepingCapacity: output.count <= 256 << 10)
        written = 0
    }

    private func endConnection(_ failure: RedisFailure, into events: inout [Event]) {
        state = .ended
        socket = nil
        output = []
        written = 0
        questions = []
        events.append(.ended(failure))
    }
}
