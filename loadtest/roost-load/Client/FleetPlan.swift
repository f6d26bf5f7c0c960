/// What the sockets of a fleet have in common.
struct FleetPlan {
    /// How many there are at most.
    var slots: Int
    var endpoint: Endpoint
    var sources: SourceAddresses
    /// Which of all workers' sockets is in a slot.
    var number: (Int) -> Int = { $0 }
    /// How many may be connecting at a time.
    var ramp: Int
    /// How many may begin to connect in a second; 0 is any number.
    var rampRate: Double
    /// Seconds between a client's heartbeats; 0 for none.
    var heartbeatSeconds: Int
    var heartbeat: [UInt8]
    /// Whether a join is complete only with the `system` message that says that its subscription is live.
    var awaitsSubscription = false
    /// Whether any message answers a join, as where another protocol is spoken.
    var takesAnyAnswer = false
}
