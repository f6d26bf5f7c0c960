public import Foundation

extension RoostClient {
    /// The settings of a client. Everything but `token` has a default that suits a chat app.
    public struct Configuration: Sendable {
        /// Returns the user's token (a JWT). Called for each connection, a minute before the last token's `exp`, and
        /// when the hub reports the token as expired. If it throws, it is called again, with growing pauses.
        public var token: @Sendable () async throws -> String
        /// A Supabase project's public key, if a gateway requires one.
        public var apiKey: String?
        /// The key under which this client is present in channels. It stays the same across reconnects, so that a
        /// return within the grace window is not visible to others.
        public var presenceKey = UUID().uuidString.lowercased()
        /// The time for which a lost connection is not shown.
        public var grace = GraceWindows()
        /// The pauses between attempts to connect, to join, and to get a token.
        public var backoff = Backoff.Policy()
        /// The time between two heartbeats. The hub closes sockets that are silent for a minute.
        public var heartbeat = Duration.seconds(25)
        /// The time limit for the hub's next message after a heartbeat; after that the connection is given up.
        public var heartbeatTimeout = Duration.seconds(10)
        /// The time limit of an attempt to connect.
        public var connectTimeout = Duration.seconds(10)
        /// The time limit for the hub's reply to a join.
        public var joinTimeout = Duration.seconds(10)
        /// The time limit for a message to wait for a reconnecting channel and for the hub's reply, together.
        public var sendTimeout = Duration.seconds(10)
        /// Decodes rows and payloads.
        public var decoder = JSONDecoder.roost
        /// Encodes payloads.
        public var encoder = JSONEncoder.roost
        /// The most elements that a sequence buffers for a slow consumer.
        public var bufferLimit = 1024
        /// The most rows that each change sequence remembers to recognize repeats.
        public var dedupeLimit = 4096
        /// The most bytes that may wait to be sent; beyond that `send` throws `.bufferFull`.
        public var sendBufferBytes = 1 << 20
        /// The longest message that the hub may send, in bytes; a longer one ends the connection.
        public var maximumMessageBytes = 16 << 20

        public init(token: @escaping @Sendable () async throws -> String) { self.token = token }

        var connectionTiming: ConnectionMachine.Timing {
            var timing = ConnectionMachine.Timing()
            timing.heartbeat = heartbeat
            timing.heartbeatTimeout = heartbeatTimeout
            timing.connectTimeout = connectTimeout
            timing.backoff = backoff
            timing.grace = grace
            return timing
        }

        var channelTiming: ChannelMachine.Timing {
            var timing = ChannelMachine.Timing()
            timing.join = joinTimeout
            timing.send = sendTimeout
            timing.grace = grace
            timing.backoff = backoff
            return timing
        }
    }
}

/// The app's state. After a loss, others see a client as present for as long as the state allows (`GraceWindows`).
public enum AppState: String, Sendable, Codable, CaseIterable {
    case active, inactive, background
}

/// The time for which a lost connection is not shown, by the app's state.
///
/// The defaults are the hub's own, so that others see a user as away at the same time as the user's own app shows the
/// loss.
public struct GraceWindows: Sendable, Equatable {
    public var active: Duration
    public var inactive: Duration
    public var background: Duration

    public init(
        active: Duration = .seconds(2), inactive: Duration = .seconds(12), background: Duration = .seconds(20)
    ) {
        self.active = active
        self.inactive = inactive
        self.background = background
    }

    /// The window for an app state.
    public subscript(state: AppState) -> Duration {
        switch state {
        case .active: active
        case .inactive: inactive
        case .background: background
        }
    }
}

/// The pauses between attempts: capped exponential, with full jitter, so that clients that lost the same hub do not
/// return at the same moment.
public struct Backoff: Sendable {
    /// The lengths of the pauses.
    public struct Policy: Sendable, Equatable {
        /// The longest first pause; it doubles with each further one.
        public var base: Duration
        /// The longest pause.
        public var cap: Duration
        /// A connection that lasted this long counts as a success: the next pause is a first one again.
        public var stableAfter: Duration

        public init(
            base: Duration = .seconds(1), cap: Duration = .seconds(15), stableAfter: Duration = .seconds(10)
        ) {
            self.base = base
            self.cap = cap
            self.stableAfter = stableAfter
        }
    }

    package let policy: Policy
    /// The number of pauses since the last success.
    package private(set) var attempts = 0

    package init(_ policy: Policy) { self.policy = policy }

    /// The longest that the next pause can be.
    package var ceiling: Duration {
        var ceiling = policy.base
        // Stops at the cap, so that no number of attempts overflows.
        for _ in 0..<attempts where ceiling < policy.cap { ceiling *= 2 }
        return min(ceiling, policy.cap)
    }

    /// Counts a pause, and returns its length.
    ///
    /// - Parameter random: a random number in 0..<1.
    package mutating func nextPause(_ random: Double) -> Duration {
        let wait = ceiling * random
        attempts += 1
        return wait
    }

    /// Notes the end of an established connection.
    package mutating func connectionEnded(after lifetime: Duration) {
        if lifetime >= policy.stableAfter { attempts = 0 }
    }

    /// Starts over, as the next attempt is likely to succeed.
    package mutating func reset() { attempts = 0 }
}
