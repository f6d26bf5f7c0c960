public import Foundation

extension RoostClient {
    /// What a client needs to know. All but `token` has a default that suits a chat app.
    public struct Configuration: Sendable {
        /// The user's token (a JWT). Asked for at each connection, a minute before the last one's `exp`, and when the
        /// hub says that it is expired. If it throws it is asked again, with growing pauses.
        public var token: @Sendable () async throws -> String
        /// A Supabase project's public key, where a gateway wants one.
        public var apiKey: String?
        /// The key under which this client is present in channels. The same over reconnects, so that a return within
        /// the grace window is seen by nobody.
        public var presenceKey = UUID().uuidString.lowercased()
        public var grace = GraceWindows()
        public var backoff = Backoff.Policy()
        /// Between heartbeats. The hub closes sockets that are silent for a minute.
        public var heartbeat = Duration.seconds(25)
        /// How long a heartbeat may go without anything from the hub until the connection is given up.
        public var heartbeatTimeout = Duration.seconds(10)
        public var connectTimeout = Duration.seconds(10)
        public var joinTimeout = Duration.seconds(10)
        /// How long a message waits for a channel that is on its way back, and then for the hub's answer.
        public var sendTimeout = Duration.seconds(10)
        /// Reads rows and payloads.
        public var decoder = JSONDecoder.roost
        /// Writes payloads.
        public var encoder = JSONEncoder.roost
        /// How many elements a sequence keeps for a consumer that is slow.
        public var bufferLimit = 1024
        /// How many rows each change sequence remembers to tell repeats by.
        public var dedupeLimit = 4096
        /// How many bytes may wait to be sent.
        public var sendBufferBytes = 1 << 20
        /// How many bytes one message from the hub may have.
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

/// What the app is doing. The hub keeps a client that it lost for as long as the state allows (`GraceWindows`).
public enum AppState: String, Sendable, Codable, CaseIterable {
    case active, inactive, background
}

/// How long a lost connection is nobody's business: a UI is not told of a shorter loss.
///
/// The defaults are the hub's own, so that a user is shown as away to others when the user's own app says so, too.
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

    /// The window of a state.
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
    /// How long to wait.
    public struct Policy: Sendable, Equatable {
        /// The longest first wait.
        public var base: Duration
        /// The longest wait of all.
        public var cap: Duration
        /// What lived for so long counts as a success: the next wait is a first one again.
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
    package private(set) var attempts = 0

    package init(_ policy: Policy) { self.policy = policy }

    /// The longest that the next wait can be.
    package var ceiling: Duration {
        var ceiling = policy.base
        // Stops at the cap, so that no number of attempts overflows.
        for _ in 0..<attempts where ceiling < policy.cap { ceiling *= 2 }
        return min(ceiling, policy.cap)
    }

    /// - Parameter random: in 0..<1.
    package mutating func next(_ random: Double) -> Duration {
        let wait = ceiling * random
        attempts += 1
        return wait
    }

    /// Something that was established has ended.
    package mutating func ended(after lifetime: Duration) {
        if lifetime >= policy.stableAfter { attempts = 0 }
    }

    /// There is a reason to believe that the next attempt succeeds.
    package mutating func reset() { attempts = 0 }
}
