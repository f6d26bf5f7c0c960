package import Hub
import Synchronization
import Wire

/// What stands for a token in the URL of one request: a browser's `EventSource` sends no header, and a URL is written into logs on
/// its way. A ticket that is read there is used already, or too old.
///
/// One for all loops; safe from any thread, behind a lock that is held for a look-up.
package final class EventTickets: Sendable {
    /// For which one is good.
    package static let seconds = 30
    /// Unused ones: some 3 MB.
    private static let most = 10_000

    private struct Issued {
        let claims: Claims
        /// In monotonic milliseconds.
        let until: Int64
    }

    private struct State {
        var issued: [String: Issued] = [:]
        /// In the order of their ends; used ones are among them until half of these are used.
        var order: [(ticket: String, until: Int64)] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Nil where too many are unused.
    package func issue(for claims: Claims, at now: HubTime) -> String? {
        var random = SystemRandomNumberGenerator()
        let ticket = String(random.next() as UInt64, radix: 36) + String(random.next() as UInt64, radix: 36)
        let until = now.monotonic + Int64(Self.seconds) * 1000
        return state.withLock { state in
            let over = state.order.prefix { $0.until <= now.monotonic }
            for one in over { state.issued[one.ticket] = nil }
            state.order.removeFirst(over.count)
            guard state.issued.count < Self.most else { return nil }
            state.issued[ticket] = Issued(claims: claims, until: until)
            state.order.append((ticket, until))
            return ticket
        }
    }

    /// Whose it is; nil where it is none, or was used.
    package func take(_ ticket: String, at now: HubTime) -> Claims? {
        state.withLock { state in
            guard let issued = state.issued.removeValue(forKey: ticket) else { return nil }
            if state.order.count > 2 * state.issued.count + 16 {
                state.order.removeAll { state.issued[$0.ticket] == nil }
            }
            return issued.until > now.monotonic ? issued.claims : nil
        }
    }
}
