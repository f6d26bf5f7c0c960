/// The configuration of the push services of browsers.
package struct WebPushConfiguration: Sendable {
    package var key: VAPIDKey
    package var rules: EndpointRules
    package var limits = PushLimits()

    package init(key: VAPIDKey, rules: EndpointRules = EndpointRules()) {
        self.key = key
        self.rules = rules
        limits.inFlight = 100
        limits.mostConnections = 64
    }
}
