/// What every socket of a fleet does first.
struct FleetPlan {
    var count: Int
    var endpoint: Endpoint
    /// Sockets that may be under way at a time: a storm is another test.
    var ramp: Int
    /// Seconds between a client's heartbeats; 0 for none.
    var heartbeatSeconds: Int
    /// Whether a join is complete only with the `system` message that says that its subscription is live.
    var awaitsSubscription: Bool
    /// The whole `phx_join` frame of a socket.
    var join: (Int) -> String
}
