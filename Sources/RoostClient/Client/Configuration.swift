public import Foundation

extension RoostClient {
    /// What a client needs to know. Everything but `token` has a default that suits a chat app.
    public struct Configuration: Sendable {
        /// Returns the user's token (a JWT). It is called at each connection, a minute before the last token's `exp`, and
        /// when the hub says that the token is expired. If it throws it is called again, with growing pauses.
        public var token: @Sendable () async throws -> String
        /// A Supabase project's public key, where a gateway wants one.
        public var apiKey: String?
        /// The key under which this client is present in channels. It stays the same over reconnects, so that nobody sees
        /// a return within the grace window.
        public var presenceKey = UUID().uuidString.lowercased()
        /// How long a loss is not shown.
        public var grace = GraceWindows()
        /// How long to wait between attempts to connect, to join, and to get a token.
        public var backoff = Backoff.Policy()
        /// The time between two heartbeats. The hub closes sockets that are silent for a minute.
        public var heartbeat = Duration.seconds(25)
        /// How long a heartbeat may go without anything from the hub until the connection is given up.
        public var heartbeatTimeout = Duration.seconds(10)
        /// How long an attempt to connect may take.
        public var connectTimeout = Duration.seconds(10)
        /// How long the hub may take to answer a join.
        public var joinTimeout = Duration.seconds(10)
        /// How long a message waits for a channel that is on its way back and for the hub's answer, together.
        public var sendTimeout = Duration.seconds(10)
        /// What reads rows and payloads.
        public var decoder = JSONDecoder.roost
        /// What writes payloads.
        public var encoder = JSONEncoder.roost
        /// How many elements a sequence keeps for a slow consumer.
        public var bufferLimit = 1024
        /// How many rows each change sequence remembers, to know repeats by.
        public var dedupeLimit = 4096
        /// How many bytes may wait to be sent before `send` throws `.bufferFull`.
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

/// What the app is doing. Others see a client as present for as long after a loss as the state allows (`GraceWindows`).
public enum AppState: String, Sendable, Codable, CaseIterable {
    case active, inactive, background
}

/// For how long a lost connection is not shown, by what the app is doing.
///
/// The defaults are the hub's own, so that others see a user as away when the user's own app shows the loss, too.
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

    /// The window while the app is in a state.
    public subscript(state: AppState) -> Duration {
        switch state {
        case .active: active
        case .inactive: inactive
        case .background: background
        }
    }
}

/// Waiting times between attempts: capped exponential, with full jitter, so that clients that lost the same hub do not
/// come back at the same moment.
public struct Backoff: Sendable {
    /// How long the waiting times are.
    public struct Policy: Sendable, Equatable {
        /// The longest that the first wait can be; each further one can be twice as long.
        public var base: Duration
        /// The longest that any wait can be.
        public var cap: Duration
        /// A connection that lived for so long was a success: the next wait is a first one again.
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
    /// How many waits there were since the last success.
    package private(set) var attempts = 0

    package init(_ policy: Policy) { self.policy = policy }

    /// The longest that the next wait can be.
    package var ceiling: Duration {
        var ceiling = policy.base
        // Stops at the cap, so that no number of attempts overflows.
        for _ in 0..<attempts where ceiling < policy.cap { ceiling *= 2 }
        return min(ceiling, policy.cap)
    }

    /// Counts a wait, and says how long it is.
    ///
    /// - Parameter random: a random number in 0..<1.
    package mutating func next(_ random: Double) -> Duration {
        let wait = ceiling * random
        attempts += 1
        return wait
    }

    /// A connection that was established has ended.
    package mutating func ended(after lifetime: Duration) {
        if lifetime >= policy.stableAfter { attempts = 0 }
    }

    /// There is a reason to believe that the next attempt succeeds.
    package mutating func reset() { attempts = 0 }
}
