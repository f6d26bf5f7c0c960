import HTTP
import Hub
import Streams
import Synchronization
package import Wire

/// Tasks that other threads post to a loop.
enum LoopTask: Sendable {
    case relay([Relay])
    case conclude(LeaseConclusion, MemberID, ChannelKey)
    case publish(BroadcastMessage, ChannelKey)
    case subscription(ChangeGroupID, ChangeSubscriptionOutcome)
    case feedIsReady(Bool)
    case authorization(AuthorizationID, AuthorizationOutcome)
    case publicationRight(Int, topic: Name, AuthorizationOutcome)
    case streamRight(Int, AuthorizationOutcome)
    case streamChanged(StreamBuffer)
    case streamAnswered(Int, StreamAnswer)
    case stored(Int, String?)
    /// The result of appending more of an exchange's body.
    case appended(Int, StreamAnswer)
    case changes(ChangeQueue.Batch)
    case ping([SocketPlace])
    case show(ActivitySummary)
    case adopt(GatewayRules)
    case respond(Int, HTTPResponse)
    case sendToOperator(OpsSocket.ID, Frame)
    case inspect(@Sendable (EventLoop) -> Void)
    /// A connection that another loop accepted.
    case take(Int32, Arrival)
    /// Descriptors run short, and the loop that noticed has no connection to end.
    case makeRoom
    /// An address has reached its limit on connections, and the loop that noticed has none of them to end.
    case endIdle(PeerAddress)
    case present(Certificate)
    case stopAccepting
    case closeSome(rounds: Int)
    case cutOff
    case stop
}

/// A loop's inbox for other threads: tasks are handed over in batches, with one wake-up per batch.
final class LoopInbox: Sendable {
    private let tasks = Mutex<[LoopTask]>([])
    let libuv = LibuvLoop()
    /// The channels of the loop's hub.
    let channels = ChannelFilter()

    /// Posts another loop's or hub's relays, unless none of them concerns this loop.
    func post(_ relays: [Relay]) {
        if relays.contains(where: channels.mayConcern) { post(.relay(relays)) }
    }

    func post(_ task: LoopTask) {
        let wasEmpty = tasks.withLock { tasks in
            tasks.append(task)
            return tasks.count == 1
        }
        if wasEmpty { libuv.wake() }
    }

    /// Takes only the relays; other tasks keep their order.
    func takeRelays() -> [Relay] {
        tasks.withLock { tasks in
            var relays: [Relay] = []
            tasks.removeAll { task in
                guard case .relay(let some) = task else { return false }
                relays += some
                return true
            }
            return relays
        }
    }

    func takeAll() -> [LoopTask] {
        tasks.withLock { tasks in
            let all = tasks
            tasks = []
            return all
        }
    }
}
