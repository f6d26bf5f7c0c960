/// All that a worker has to know; every worker of a run gets the same.
struct LoadPlan: Codable, Sendable {
    var scenario: Scenario
    var target: Target
    var dialect: Dialect
    /// Another protocol than Phoenix'.
    var raw: RawProtocol?
    /// Distinguishes this run's messages from those of others.
    var run: UInt32
    var seed: UInt64
    var sockets: Int
    var channels = 1
    var channelsPerSocket = 1
    var workers = 1
    /// Loopback addresses that sockets come from; 0 is as many as they need.
    var sources = 0
    var ramp = 256
    var rampRate = 0.0
    /// Seconds between a client's heartbeats; 0 for none.
    var heartbeat = 25
    /// Messages a second, of all publishers together; rows, where rows are written.
    var rate = 0.0
    /// How many messages are due at the same moment.
    var burst = 1
    /// Bytes of a message between the publisher's prefix and suffix.
    var size = 150
    var seconds = 10.0
    var warmUp = 0.0
    /// How long to wait for the last deliveries, in seconds.
    var settle = 10.0
    /// How many sockets stop to read.
    var stalled = 0
    /// Whether sockets wait until the server cuts them off, instead of going themselves.
    var waitsForCut = false
    var rows: RowTerms?
    var chat = ChatTerms()

    /// Sockets that only publish.
    var publishers: Int {
        rate > 0 && (scenario == .fanout || scenario == .slow)
            ? (channels + Self.channelsPerPublisher - 1) / Self.channelsPerPublisher : 0
    }

    /// Servers bound how many channels a socket may join, at 100 by default.
    static let channelsPerPublisher = 50
}
