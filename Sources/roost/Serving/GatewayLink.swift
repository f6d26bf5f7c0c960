import Gateway
import Hub
import Synchronization

/// The gateway, for those who are made before it and tell it something later.
final class GatewayLink: Sendable {
    private let gateway = Mutex<Gateway?>(nil)

    func set(_ gateway: Gateway) { self.gateway.withLock { $0 = gateway } }

    func show(_ summary: ActivitySummary) { gateway.withLock { $0 }?.show(summary) }
}
