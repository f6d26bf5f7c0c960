import Dispatch
import Gateway
import Glibc
import Logging
import Notify
import Ops
import Synchronization

/// A running hub: waits for a signal, then drains and stops its rooms in order.
struct HubService {
    let rooms: HubRooms

    /// Runs until a signal, then stops the rooms. The order matters. Sockets end first, because only then it is known
    /// what each client has certainly received, and the last cursor that the feed stores must not be beyond that. Then
    /// the feed, which hands changes to the loops; then the authority, which answers the loops; the loops last, because
    /// the others wait for them.
    func runUntilSignal() async {
        let reloading = Task { await rooms.reload.followSignals(Signals.hangUps, rooms) }
        await Signals.waitForInterruption()
        reloading.cancel()
        let drain = rooms.reload.configuration.drain
        let deadline = DrainDeadline(drain)
        rooms.health.startDrain()
        rooms.supervision?.reportStopping(within: .seconds(drain.longest))
        deadline.enterStep("waiting for the load balancer")
        await pauseDrain(.seconds(drain.delaySeconds))
        rooms.cluster?.startDraining()
        deadline.enterStep("closing sockets")
        rooms.gateway.stopAccepting()
        await closeSockets(within: drain.seconds)
        deadline.enterStep("storing the cursor; changes since the last one that was stored will be sent again")
        rooms.subscriptions.stop()
        rooms.listener?.stop()
        rooms.capture?.stop()
        deadline.enterStep("saying good-bye to the other hubs")
        rooms.cluster?.stop(within: .seconds(1))
        deadline.enterStep("sending what is on its way to Apple")
        rooms.pushService?.stop(within: .seconds(2))
        rooms.alertTraces?.stop()
        deadline.enterStep("telling webhooks.url what waits for it")
        rooms.webhooks?.stop(within: .seconds(2))
        deadline.enterStep("writing down who is present and who was served")
        // Concurrently: each may wait some seconds for an unresponsive database, and the deadline covers them all.
        DispatchQueue.concurrentPerform(iterations: 4) { part in
            switch part {
            case 0: rooms.presenceWriter.stop()
            case 1: rooms.receiptWriter?.stop()
            case 2: rooms.messageWriter.stop()
            default: rooms.sessions.stop()
            }
        }
        deadline.enterStep("ending the sessions that ask policies")
        rooms.authority.stop()
        deadline.enterStep("telling apps that their replies end")
        rooms.forwarder?.stop(within: .seconds(2))
        deadline.enterStep("writing streams")
        rooms.streamRows.stop()
        rooms.streams?.stop()
        deadline.enterStep("ending the event loops")
        rooms.gateway.stop()
        LogOutput.standard.flush()
    }

    /// Closes the sockets in batches at irregular intervals, so that clients do not all reconnect at the same instant.
    /// Half of the time is for closing, half for peers to read what waits for them and answer.
    private func closeSockets(within seconds: Int) async {
        guard connections > 0 else { return }
        rooms.logger.info("draining \(connections) connections")
        let start = ContinuousClock.now
        let closing = start + .seconds(seconds) / 2
        let end = start + .seconds(seconds)
        repeat {
            rooms.gateway.closeSome(rounds: 1 + max(0, Int((closing - .now) / Self.interval)))
            await pauseDrain(Self.interval * Double.random(in: 0.5..<1.5))
        } while connections > 0 && ContinuousClock.now < end
        guard connections > 0 else { return }
        rooms.logger.warning("\(connections) connections did not end in time and are cut off")
        rooms.gateway.cutOff()
        let last = ContinuousClock.now + .seconds(1)
        while connections > 0, ContinuousClock.now < last { await pauseDrain(.milliseconds(10)) }
    }

    private static let interval = Duration.milliseconds(100)

    private func pauseDrain(_ time: Duration) async {
        do { try await Task.sleep(for: time) } catch { rooms.logger.debug("a pause of the drain was cut short") }
    }

    private var connections: Int { rooms.gateway.figures.reduce(0) { $0 + $1.connections } }
}

/// The time limits of a drain's parts.
struct DrainTimes {
    /// Seconds between the failure of `/readyz` and the first refused connection.
    let delaySeconds: Int
    /// Seconds over which the sockets are closed.
    let seconds: Int
    /// Seconds for everything after the sockets.
    static let margin = 5

    /// Seconds until the drain is over, or the process is ended.
    var longest: Int { delaySeconds + seconds + Self.margin }
}

/// Ends the process if its drain takes too long: a loop or a database that hangs must not block a deploy.
final class DrainDeadline: Sendable {
    private let step = Mutex("draining")

    /// Starts the countdown.
    init(_ times: DrainTimes) {
        let seconds = times.longest
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(seconds)) { [self] in
            let step = step.withLock { $0 }
            StandardError.write("Error: the hub did not stop within \(seconds) s and is ended while it was \(step).\n")
            _exit(ExitStatus.software.rawValue)
        }
    }

    /// - Parameter step: the current step of the drain, for the error.
    func enterStep(_ step: String) {
        self.step.withLock { $0 = step }
    }
}
