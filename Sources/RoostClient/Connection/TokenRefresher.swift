import Foundation

/// When to ask for a token: the part of the connection's logic that knows tokens.
package struct TokenRefresher {
    package private(set) var token: String?
    /// A question is under way.
    package private(set) var asking: Int?
    private var questions = 0
    private var askAt: Moment?
    private var deadline: Moment?
    private var backoff: Backoff
    private let timeout: Duration

    /// A new token is asked for this long before the old one runs out, or in the last fifth of a short life.
    package static let margin: Duration = .seconds(60)

    package init(_ policy: Backoff.Policy, timeout: Duration) {
        backoff = Backoff(policy)
        self.timeout = timeout
    }

    /// The time of `tick`.
    package var nextDeadline: Moment? { asking == nil ? askAt : deadline }

    /// Begins a question, or gives the one that is under way.
    package mutating func ask(at now: Moment) -> (id: Int, isNew: Bool) {
        if let asking { return (asking, false) }
        questions += 1
        asking = questions
        askAt = nil
        deadline = now + timeout
        return (questions, true)
    }

    /// The hub says that the token is no good (any more).
    package mutating func refused(at now: Moment, _ random: Double) {
        guard asking == nil else { return }
        askAt = min(askAt ?? .seconds(Int64.max / 4), now + (backoff.attempts == 0 ? .zero : backoff.ceiling * random))
        _ = backoff.next(random)
    }

    package enum Answer {
        case new(String)
        case same(String)
        case none
    }

    /// - Parameters:
    ///   - token: nil where the callback failed.
    ///   - unix: the wall clock, in seconds since 1970.
    package mutating func answer(_ id: Int, _ token: String?, at now: Moment, unix: Double, _ random: Double) -> Answer
    {
        guard asking == id else { return .none }
        asking = nil
        deadline = nil
        guard let token else {
            if self.token != nil { askAt = now + backoff.next(random) }
            return .none
        }
        let isNew = token != self.token
        self.token = token
        if let left = TokenClaims(token).expiresAt.map({ Duration.seconds($0 - unix) }) {
            let wait = left - min(Self.margin, left / 5)
            // A token that looks expired may come from a clock that is wrong; the hub will say so if it is expired.
            if isNew, wait > .zero {
                askAt = now + wait
                backoff.reset()
            } else if !isNew, left > .zero {
                askAt = now + max(wait, backoff.next(random))
            }
        }
        return isNew ? .new(token) : .same(token)
    }

    package enum Due {
        case ask
        /// The question with this number has waited for too long.
        case giveUp(Int)
    }

    package mutating func tick(_ now: Moment, _ random: Double) -> Due? {
        if let asking, let deadline, deadline <= now {
            self.asking = nil
            self.deadline = nil
            if token != nil { askAt = now + backoff.next(random) }
            return .giveUp(asking)
        }
        if asking == nil, let askAt, askAt <= now {
            self.askAt = nil
            return .ask
        }
        return nil
    }

    /// There is no socket that a new token would be for; the next one asks anyway.
    package mutating func rest() { askAt = nil }
}

/// What a client reads in its own token. Nothing is verified: that is the hub's business.
package struct TokenClaims: Equatable {
    /// Seconds since 1970 (RFC 7519, section 4.1.4).
    package let expiresAt: Double?

    package init(_ token: String) {
        expiresAt = Self.payload(of: token).flatMap { payload in
            do {
                return try JSONDecoder().decode(Payload.self, from: payload).exp
            } catch {
                // An opaque token has no claims, which is nobody's fault.
                return nil
            }
        }
    }

    private struct Payload: Decodable {
        let exp: Double?
    }

    /// The second part of a JWT: base64url without padding (RFC 7515, section 2).
    private static func payload(of token: String) -> Data? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var text = parts[1].replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        return Data(base64Encoded: String(text))
    }
}
