import ChangeFeed
import Dispatch
import Gateway
import Logging
import Notify
import Ops

/// The running hub: waits for a signal, then takes its leave in good order.
struct HubService {
    let gateway: Gateway
    let subscriptions: ChangeSubscriptions
    let authority: PolicyAuthority
    let keeper: PresenceKeeper
    let sessions: SessionWriter
    let desk: PushService?
    let health: Health
    let reload: Reload
    let reloaded: Reload.Rooms
    let supervision: Supervision?
    let logger: Logger

    /// The order matters. Sockets end first, because what a client has certainly got is known when its socket has ended,
    /// and the last cursor that the feed stores must not be beyond that. Then the feed, which hands to the loops; then the
    /// authority, which answers them; the loops last, because the others wait for them.
    func run() async {
        let reloading = Task { await reload.follow(Signals.hangUps, reloaded) }
        await Signals.interruption()
        reloading.cancel()
        let drain = reload.configuration.drain
        let deadline = DrainDeadline(drain)
        health.drain()
        supervision?.stops(within: .seconds(drain.longest))
        deadline.enters("waiting for the load balancer")
        await pause(.seconds(drain.delaySeconds))
        deadline.enters("closing sockets")
        gateway.stopAccepting()
        await closeSockets(within: drain.seconds)
        deadline.enters("storing the cursor; changes since the last one that was stored will be sent again")
        subscriptions.stop()
        deadline.enters("sending what is on its way to Apple")
        desk?.stop(within: .seconds(2))
        deadline.enters("writing down who is present and who was served")
        // Beside each other: each waits some seconds for a database that does not answer, and the deadline is for both.
        DispatchQueue.concurrentPerform(iterations: 2) { $0 == 0 ? keeper.stop() : sessions.stop() }
        deadline.enters("ending the sessions that ask policies")
        authority.stop()
        deadline.enters("ending the event loops")
        gateway.stop()
        LogOutput.standard.flush()
    }

    /// In shares and at odd moments, so that the clients do not all come back in the same instant. Half of the time is for
    /// closing, half for peers to take what waits for them and answer.
    private func closeSockets(within seconds: Int) async {
        guard connections > 0 else { return }
        logger.info("draining \(connections) connections")
        let start = ContinuousClock.now
        let closing = start + .seconds(seconds) / 2
        let end = start + .seconds(seconds)
        repeat {
            gateway.closeSome(rounds: 1 + max(0, Int((closing - .now) / Self.rhythm)))
            await pause(Self.rhythm * Double.random(in: 0.5..<1.5))
        } while connections > 0 && ContinuousClock.now < end
        guard connections > 0 else { return }
        logger.warning("\(connections) connections did not end in time and are cut off")
        gateway.cutOff()
        let last = ContinuousClock.now + .seconds(1)
        while connections > 0, ContinuousClock.now < last { await pause(.milliseconds(10)) }
    }

    private static let rhythm = Duration.milliseconds(100)

    private func pause(_ time: Duration) async {
        do { try await Task.sleep(for: time) } catch { logger.debug("a pause of the drain was cut short") }
    }

    private var connections: Int { gateway.figures.reduce(0) { $0 + $1.connections } }
}
