import Glibc
import RedisFixtures
import Workers

@testable import Redis

/// Turns of a link as its thread makes them, and all that it told.
final class LinkDriver {
    let link: RedisLink
    private(set) var events: [LinkEvent] = []
    /// What `expect` has looked at.
    private var seen = 0

    init(
        _ address: RedisAddress, channels: [String] = ["{roost:test}:c"], scripts: [RedisScript] = LogScripts.all,
        timeouts: RedisTimeouts = .patient
    ) {
        link = RedisLink(
            address, name: "roost-test", channels: channels, scripts: scripts, timeouts: timeouts, at: .now)
    }

    func turn(until deadline: ContinuousClock.Instant) {
        var polled: [pollfd] = []
        link.preparePoll(into: &polled)
        poll(&polled, nfds_t(polled.count), milliseconds(until: min(deadline, link.deadline ?? deadline)))
        events += link.makeProgress(at: .now)
    }

    /// Waits for an event that is told after those that were waited for before.
    @discardableResult
    func expect<Found>(
        _ what: String, within limit: Duration = .seconds(20), _ choose: (LinkEvent) -> Found?
    ) throws -> Found {
        let deadline = ContinuousClock.now + limit
        while true {
            while seen < events.count {
                seen += 1
                if let found = choose(events[seen - 1]) { return found }
            }
            guard ContinuousClock.now < deadline else {
                throw RedisFixtureError(description: "not in time: \(what); it told \(events.suffix(20))")
            }
            turn(until: deadline)
        }
    }

    func becomesWhole() throws { try expect("whole") { $0 == .whole ? () : nil } }

    func falls() throws -> RedisFailure {
        try expect("away") { if case .away(let failure) = $0 { failure } else { nil } }
    }

    /// Until it falls for this reason.
    @discardableResult
    func falls(_ kind: RedisFailure.Kind) throws -> RedisFailure {
        try expect("away: \(kind)") { if case .away(let failure) = $0, failure.kind == kind { failure } else { nil } }
    }

    func reply(to command: RedisArgument..., tag: UInt64 = 1) throws -> RedisValue {
        guard link.queueCommand(command, tag: tag, at: .now) else { throw RedisFixtureError(description: "refused") }
        return try reply(tag)
    }

    func reply(_ tag: UInt64) throws -> RedisValue {
        try expect("reply \(tag)") { if case .reply(tag, let value) = $0 { value } else { nil } }
    }
}

extension RedisTimeouts {
    /// For tests about something else, so that a busy machine is not taken for a dead server.
    static var patient: RedisTimeouts {
        var timeouts = RedisTimeouts()
        timeouts.connect = .seconds(15)
        timeouts.silence = .seconds(15)
        timeouts.setUp = .seconds(30)
        return timeouts
    }
}
