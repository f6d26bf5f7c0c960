package import Hub
import Synchronization
import Wire

/// Tickets that replace a token in the URL of one request: a browser's `EventSource` sends no headers, and URLs are
/// logged on their way. A ticket found in a log has been used already, or has expired.
///
/// One table for all loops. Safe from any thread, behind a lock that is held for a look-up.
package final class EventTickets: Sendable {
    /// The seconds for which a ticket is valid.
    package static let seconds = 30
    /// The most unused tickets, which take about 3 MB.
    private static let most = 10_000

    private struct Issued {
        let claims: Claims
        let holder: TicketShares.Holder
        /// In monotonic milliseconds.
        let until: Int64
    }

    private struct State {
        var issued: [Name: Issued] = [:]
        /// In order of expiry; includes used tickets until they are half of the list.
        var order: [(ticket: Name, until: Int64)] = []
        var shares = TicketShares()

        mutating func remove(_ ticket: Name) -> Issued? {
            guard let one = issued.removeValue(forKey: ticket) else { return nil }
            shares.leave(one.holder)
            return one
        }
    }

    package enum Outcome {
        case issued(String)
        /// The user, token or address has too many unused tickets.
        case overShare(TicketShares.Bound)
        /// There are too many unused tickets in total.
        case full
    }

    private let state = Mutex(State())

    package init() {}

    package func issue(for claims: Claims, from address: PeerAddress?, at now: HubTime) -> Outcome {
        let holder = TicketShares.Holder(claims, at: address)
        var random = SystemRandomNumberGenerator()
        let ticket = Name(
            String(random.next() as UInt64, radix: 36) + String(random.next() as UInt64, radix: 36))
        let until = now.monotonic + Int64(Self.seconds) * 1000
        return state.withLock { state in
            let over = state.order.prefix { $0.until <= now.monotonic }
            for one in over { _ = state.remove(one.ticket) }
            state.order.removeFirst(over.count)
            guard state.issued.count < Self.most else { return .full }
            if let bound = state.shares.enter(holder) { return .overShare(bound) }
            state.issued[ticket] = Issued(claims: claims, holder: holder, until: until)
            state.order.append((ticket, until))
            return .issued(ticket.text)
        }
    }

    /// Uses up a ticket and returns its claims; nil if it is unknown, used or expired.
    package func take(_ ticket: String, at now: HubTime) -> Claims? {
        state.withLock { state in
            guard let issued = state.remove(Name(ticket)) else { return nil }
            if state.order.count > 2 * state.issued.count + 16 {
                state.order.removeAll { state.issued[$0.ticket] == nil }
            }
            return issued.until > now.monotonic ? issued.claims : nil
        }
    }
}
