import Gateway
import Hub
import Testing
import Wire

/// What one user, one token or one address may have of what all share.
@Suite struct SharesTests {
    private func claims(_ subject: String?, _ role: String = "authenticated") -> Claims {
        Claims(
            role: Name(role), subject: subject.map { Name($0) }, expiresAt: 10_000,
            json: Array("{\"role\":\"\(role)\"}".utf8))
    }

    private let now = HubTime(monotonic: 0, unix: 1_000_000)
    private func later(_ seconds: Int) -> HubTime { HubTime(monotonic: Int64(seconds) * 1000, unix: 1_000_000) }

    private func address(_ text: String) -> PeerAddress? { IPAddress(text).map { PeerAddress($0) } }

    private func ticket(_ outcome: EventTickets.Outcome) -> String? {
        if case .issued(let ticket) = outcome { ticket } else { nil }
    }

    private func isOverShare(_ outcome: EventTickets.Outcome) -> Bool {
        if case .overShare = outcome { true } else { false }
    }

    @Test func aUserHasSoManyTickets() throws {
        let tickets = EventTickets()
        var last: String?
        for _ in 0..<TicketShares.mostOfUser { last = ticket(tickets.issue(for: claims("ann"), from: nil, at: now)) }
        #expect(isOverShare(tickets.issue(for: claims("ann"), from: nil, at: now)))
        #expect(ticket(tickets.issue(for: claims("Ann"), from: nil, at: now)) != nil)
        // One that is used makes room, and so do those that are too old.
        #expect(tickets.take(try #require(last), at: now)?.subject == "ann")
        #expect(ticket(tickets.issue(for: claims("ann"), from: nil, at: now)) != nil)
        #expect(isOverShare(tickets.issue(for: claims("ann"), from: nil, at: later(29))))
        for _ in 0..<TicketShares.mostOfUser {
            #expect(ticket(tickets.issue(for: claims("ann"), from: nil, at: later(31))) != nil)
        }
    }

    /// One anonymous key was enough to leave nobody any.
    @Test func oneAddressOrOneTokenLeavesRoomForOthers() {
        let tickets = EventTickets()
        for _ in 0..<20_000 { _ = tickets.issue(for: claims(nil, "anon"), from: address("192.0.2.1"), at: now) }
        guard case .overShare(.address) = tickets.issue(for: claims("ann"), from: address("192.0.2.1"), at: now) else {
            return #expect(Bool(false), "the address has too many, and not its user")
        }
        #expect(ticket(tickets.issue(for: claims(nil, "anon"), from: address("192.0.2.2"), at: now)) != nil)
        for host in 0..<20_000 {
            _ = tickets.issue(for: claims(nil, "anon"), from: address("10.0.\(host / 250).\(host % 250)"), at: now)
        }
        #expect(isOverShare(tickets.issue(for: claims(nil, "anon"), from: address("192.0.2.2"), at: now)))
        #expect(ticket(tickets.issue(for: claims("ann"), from: address("192.0.2.2"), at: now)) != nil)
        #expect(ticket(tickets.issue(for: claims(nil, "guest"), from: nil, at: now)) != nil)
    }

    @Test func aUserHasSoManyRequestsOpen() throws {
        let requests = HeldRequests(most: 2)
        let first = try #require(requests.enter(claims("Jos\u{e9}")))
        _ = try #require(requests.enter(claims("Jos\u{e9}")))
        #expect(requests.enter(claims("Jos\u{e9}")) == nil)
        #expect(requests.enter(claims("Jose\u{301}")) != nil, "another, byte by byte")
        for _ in 0..<10 { #expect(requests.enter(claims(nil)) != nil) }
        requests.leave(first)
        #expect(requests.enter(claims("Jos\u{e9}")) != nil)
        requests.adopt(most: 0)
        for _ in 0..<10 { #expect(requests.enter(claims("Jos\u{e9}")) != nil) }
    }

    @Test func addressesThatFailAreHeldBackBehindExactlySoMany() {
        let failing = FailingAddresses(allowance: 10)
        for _ in 0..<10 {
            #expect(!failing.keepsFailing("192.0.2.1", at: 0))
            failing.failed("192.0.2.1", at: 0)
        }
        #expect(failing.keepsFailing("192.0.2.1", at: 0) && !failing.keepsFailing("192.0.2.2", at: 0))
    }
}
