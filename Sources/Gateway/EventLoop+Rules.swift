import Hub

/// New rules, on the loop's own thread.
extension EventLoop {
    func adopt(_ rules: GatewayRules) {
        self.rules = rules
        hub.adopt(rules.limits, rules.presence, rules.typing)
        delivery.adopt(cap: rules.pendingBytesPerSocket)
        door.origins = rules.origins
        broadcastAPI.limits = rules.limits
    }
}
