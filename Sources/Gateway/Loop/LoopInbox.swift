import HTTP
import Hub
import Streams
import Synchronization
package import Wire

/// What other threads ask of a loop.
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
    /// More of an exchange's body is appended.
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
    /// Descriptors run short, and the loop that noticed has nothing that could end.
    case makeRoom
    /// An address has all the connections that it may, none of which could end on the loop that noticed.
    case endIdle(PeerAddress)
    case present(Certificate)
    case stopAccepting
    case closeSome(rounds: Int)
    case cutOff
    case stop
}

/// The way to a loop for other threads: tasks are taken over in batches, with one wake-up for each batch.
final class LoopInbox: Sendable {
    private let tasks = Mutex<[LoopTask]>([])
    let libuv = LibuvLoop()
    /// The channels of the loop's hub.
    let channels = ChannelFilter()

    /// What another loop's hub did, or another hub; nothing where none of it concerns this loop.
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

    /// The relays alone; what else was posted stays in its order.
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
