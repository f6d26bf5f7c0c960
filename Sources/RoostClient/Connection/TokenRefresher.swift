import Foundation
import Wire

/// Decides when to request a token from the app: for each connection, before the last one expires, and when the hub
/// refuses it. Pure; a part of `ConnectionMachine`.
package struct TokenRefresher {
    /// The last token from the app.
    package private(set) var token: String?
    /// The number of the pending request; nil if there is none.
    package private(set) var asking: Int?
    private var questions = 0
    private var askAt: Moment?
    /// The time at which the pending request is given up.
    private var deadline: Moment?
    private var backoff: Backoff
    private let timeout: Duration

    /// The time before the old token's expiry at which a new one is requested; for a token that lives less than five times as
    /// long, in the last fifth of its life.
    package static let margin: Duration = .seconds(60)

    package init(_ policy: Backoff.Policy, timeout: Duration) {
        backoff = Backoff(policy)
        self.timeout = timeout
    }

    /// The next time at which `handleDeadlines` has work.
    package var nextDeadline: Moment? { asking == nil ? askAt : deadline }

    /// Starts a request, unless one is pending.
    package mutating func requestToken(at now: Moment) -> (id: Int, isNew: Bool) {
        if let asking { return (asking, false) }
        questions += 1
        asking = questions
        askAt = nil
        deadline = now + timeout
        return (questions, true)
    }

    /// The hub does not accept the token, or no longer does: requests another one.
    package mutating func tokenRefused(at now: Moment, _ random: Double) {
        guard asking == nil else { return }
        askAt = min(askAt ?? .seconds(Int64.max / 4), now + (backoff.attempts == 0 ? .zero : backoff.ceiling * random))
        _ = backoff.nextPause(random)
    }

    package enum Answer {
        case new(String)
        case same(String)
        case none
    }

    /// Handles the app's answer to a request.
    ///
    /// - Parameters:
    ///   - token: nil if the callback failed.
    ///   - unix: the wall clock, in seconds since 1970.
    package mutating func answerReceived(_ id: Int, _ token: String?, at now: Moment, unix: Double, _ random: Double)
        -> Answer
    {
        guard asking == id else { return .none }
        asking = nil
        deadline = nil
        guard let token else {
            if self.token != nil { askAt = now + backoff.nextPause(random) }
            return .none
        }
        let isNew = token != self.token
        self.token = token
        if let left = TokenClaims(token).expiresAt.map({ Duration.seconds($0 - unix) }) {
            let wait = left - min(Self.margin, left / 5)
            // A token may only look expired because of a wrong clock; the hub reports it if it is.
            if isNew, wait > .zero {
                askAt = now + wait
                backoff.reset()
            } else if !isNew, left > .zero {
                askAt = now + max(wait, backoff.nextPause(random))
            }
        }
        return isNew ? .new(token) : .same(token)
    }

    package enum Due {
        case ask
        /// The request with this number has waited for too long, and is not pending any more.
        case giveUp(Int)
    }

    /// Returns the action that is due.
    package mutating func handleDeadlines(_ now: Moment, _ random: Double) -> Due? {
        if let asking, let deadline, deadline <= now {
            self.asking = nil
            self.deadline = nil
            if token != nil { askAt = now + backoff.nextPause(random) }
            return .giveUp(asking)
        }
        if asking == nil, let askAt, askAt <= now {
            self.askAt = nil
            return .ask
        }
        return nil
    }

    /// Requests nothing until the next connection: there is no socket for a new token.
    package mutating func cancelRequest() { askAt = nil }
}

/// The claims that a client reads from its own token. Verification is the hub's job.
package struct TokenClaims: Equatable {
    /// The expiry in seconds since 1970 (RFC 7519, section 4.1.4); nil if the token has none.
    package let expiresAt: Double?

    package init(_ token: String) {
        expiresAt = Self.payload(of: token).flatMap { payload in
            do {
                return try JSONDecoder().decode(Payload.self, from: payload).exp
            } catch {
                // A token that is not a JWT has no claims; the hub judges it.
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
