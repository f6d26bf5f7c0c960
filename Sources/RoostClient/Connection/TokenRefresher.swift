import Foundation
import Wire

/// Decides when the app is asked for a token: at each connection, before the last one expires, and when the hub refuses
/// it. Pure; a part of `ConnectionMachine`.
package struct TokenRefresher {
    /// The last token that the app gave.
    package private(set) var token: String?
    /// The number of the question that is under way; nil while there is none.
    package private(set) var asking: Int?
    private var questions = 0
    private var askAt: Moment?
    /// When the question that is under way is given up.
    private var deadline: Moment?
    private var backoff: Backoff
    private let timeout: Duration

    /// How long before the old token expires a new one is asked for; of a token that lives for less than five times as
    /// long, in the last fifth of its life.
    package static let margin: Duration = .seconds(60)

    package init(_ policy: Backoff.Policy, timeout: Duration) {
        backoff = Backoff(policy)
        self.timeout = timeout
    }

    /// When `tick` has something to do.
    package var nextDeadline: Moment? { asking == nil ? askAt : deadline }

    /// Begins a question, unless one is under way.
    package mutating func ask(at now: Moment) -> (id: Int, isNew: Bool) {
        if let asking { return (asking, false) }
        questions += 1
        asking = questions
        askAt = nil
        deadline = now + timeout
        return (questions, true)
    }

    /// The hub does not accept the token, or does not any more: another one is asked for.
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

    /// The app has answered a question.
    ///
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
        /// The question with this number has waited for too long, and is not under way any more.
        case giveUp(Int)
    }

    /// What is due.
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

    /// Asks for nothing until the next connection does: there is no socket that a new token would be for.
    package mutating func rest() { askAt = nil }
}

/// What a client reads in its own token. It verifies nothing: that is the hub's job.
package struct TokenClaims: Equatable {
    /// When the token expires, in seconds since 1970 (RFC 7519, section 4.1.4); nil where it does not say.
    package let expiresAt: Double?

    package init(_ token: String) {
        expiresAt = Self.payload(of: token).flatMap { payload in
            do {
                return try JSONDecoder().decode(Payload.self, from: payload).exp
            } catch {
                // A token that is no JWT has no claims; the hub judges it.
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
        return Base64URL.decode(parts[1].utf8).map { Data($0) }
    }
}
