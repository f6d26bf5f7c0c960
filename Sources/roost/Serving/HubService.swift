import ChangeFeed
import Dispatch
import Gateway
import Glibc
import Logging
import Ops
import ServiceLifecycle

/// The running hub: waits for a signal, then takes its leave in good order.
struct HubService: Service {
    let gateway: Gateway
    let subscriptions: ChangeSubscriptions
    let authority: PolicyAuthority
    let health: Health
    let drainSeconds: Int
    let logger: Logger

    func run() async throws {
        try await gracefulShutdown()
        // Whoever asks twice means it.
        for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
        endAnyhow()
        health.drain()
        gateway.stopAccepting()
        await closeSockets()
        subscriptions.stop()
        authority.stop()
        gateway.stop()
    }

    /// A loop or a database that hangs must not keep a deploy from going on.
    private func endAnyhow() {
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(drainSeconds + 10)) {
            StandardError.write("Error: the hub did not stop in time and is ended.\n")
            _exit(ExitStatus.software.rawValue)
        }
    }

    /// In batches, so that the clients do not all come back in the same instant.
    private func closeSockets() async {
        let open = connections
        guard open > 0 else { return }
        logger.info("draining \(open) connections")
        let ticks = max(1, drainSeconds * 10)
        // Half of the time is for closing, half for peers to answer.
        let batch = max(50, open / max(1, ticks / 2) / gateway.loopCount + 1)
        for _ in 0..<ticks where connections > 0 {
            gateway.closeSome(batch)
            do { try await Task.sleep(for: .milliseconds(100)) } catch { return }
        }
    }

    private var connections: Int { gateway.figures.reduce(0) { $0 + $1.connections } }
}
