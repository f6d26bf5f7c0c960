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
