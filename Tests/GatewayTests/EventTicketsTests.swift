import Gateway
import Hub
import Testing

/// What stands for a token in a URL.
@Suite struct EventTicketsTests {
    private let claims = Claims(role: "authenticated", subject: "ann", expiresAt: 10_000, json: Array("{}".utf8))

    private func time(_ seconds: Int64) -> HubTime { HubTime(monotonic: seconds * 1000, unix: seconds * 1000) }

    private func issued(by tickets: EventTickets, at now: HubTime) -> String? {
        if case .issued(let ticket) = tickets.issue(for: claims, from: nil, at: now) { ticket } else { nil }
    }

    @Test func oneIsGoodOnceAndForAWhile() throws {
        let tickets = EventTickets()
        let ticket = try #require(issued(by: tickets, at: time(1)))
        #expect(tickets.take(ticket, at: time(2))?.subject == "ann")
        #expect(tickets.take(ticket, at: time(2)) == nil)
        let old = try #require(issued(by: tickets, at: time(3)))
        #expect(tickets.take(old, at: time(3 + Int64(EventTickets.seconds))) == nil)
    }

    /// Used ones hold no place: as many can be issued and used as there are requests.
    @Test func usedOnesHoldNoPlace() throws {
        let tickets = EventTickets()
        for _ in 0..<30_000 {
            let ticket = try #require(issued(by: tickets, at: time(1)))
            #expect(tickets.take(ticket, at: time(1)) != nil)
        }
        #expect(issued(by: tickets, at: time(2)) != nil)
    }
}
