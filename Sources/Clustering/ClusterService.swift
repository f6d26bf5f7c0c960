package import Cluster
package import Hub
package import Logging
package import Redis
import Workers

/// Makes several hubs act as one: tells the other hubs what happens here, and the loops what happens there.
///
/// One thread, `roost-cluster`, owns the link with Redis; no other thread ever waits for it. While the link is away, everything
/// local goes on, and messages for the other hubs are kept for ten seconds; after that they are reported missing (`LogReader`).
///
/// Thread-safe.
package final class ClusterService: PeerService {
    private let setup: Setup
    let mailbox = WorkerMailbox<ClusterMail>(ClusterMail())
    private let stopSignal = StopSignal()
    private let published = Published(ClusterStatistics())
    private let thread = WorkerThread(named: "roost-cluster")

    package init(_ setup: Setup) { self.setup = setup }

    /// Starts the thread, which connects and keeps trying. Call it once per service.
    package func start(telling sink: any PeerSink) {
        let (setup, mailbox, stopSignal, published) = (setup, mailbox, stopSignal, published)
        thread.start {
            var worker = ClusterWorker(setup, sink, mailbox, stopSignal, published)
            worker.runUntilStopped()
        }
    }

    /// Says good-bye to the other hubs and ends the thread. A thread that hangs is left behind, because the process is about to end.
    package func stop(within patience: Duration = .seconds(1)) {
        stopSignal.stop(by: .now + patience)
        thread.join(by: .now + patience)
    }

    package func postRelays(_ relays: [Relay], from loop: Int) {
        mailbox.post { $0.posts.append(ClusterMail.Post(loop: loop, relays: relays)) }
    }

    /// Waits until other hubs are found, or until this one has been in the log long enough to rule them out.
    ///
    /// - Returns: whether there are others.
    package func findsOthers(within patience: Duration) -> Bool {
        let end = ContinuousClock.now + patience
        let pause = EventDescriptor()
        var wholeSince: ContinuousClock.Instant?
        while ContinuousClock.now < end {
            let statistics = statistics
            if !statistics.peers.isEmpty { return true }
            wholeSince = statistics.isWhole ? wholeSince ?? .now : nil
            // Each hub sends a beat twice a second.
            if let wholeSince, .now - wholeSince > .milliseconds(1200) { return false }
            _ = pause.wait(until: .now + .milliseconds(20))
        }
        return false
    }

    /// Waits until the log is read up to its head as of this call, and its messages are handed to the loops.
    ///
    /// - Parameter done: called on the service's thread; false if the hubs do not act as one now.
    package func awaitHead(_ done: @escaping @Sendable (Bool) -> Void) {
        let isPosted = mailbox.post { mail in
            if !mail.isClosed { mail.headWaiters.append(done) }
            return !mail.isClosed
        }
        if !isPosted { done(false) }
    }

    /// Tells the other hubs that clients are about to leave this one, so that they expect them. Thread-safe.
    package func startDraining() { mailbox.post { $0.isDraining = true } }

    /// Replaces the presence windows.
    package func replaceRules(_ rules: PresenceRules) { mailbox.post { $0.rules = rules } }

    /// A recent snapshot. Thread-safe.
    package var statistics: ClusterStatistics { published.value }

    /// Everything a service works with.
    package struct Setup: Sendable {
        let address: RedisAddress
        let cluster: String
        let own: HubIdentity
        let shared: HubShared
        let rules: PresenceRules
        /// How long members of a draining hub still count as present, in milliseconds.
        let restartWindow: Int64
        /// Approximate size of the log in Redis, in bytes.
        let logBytes: Int
        /// This hub's version of Roost, as shown by other hubs.
        let version: String
        /// The number of open WebSockets on this hub.
        let connections: @Sendable () -> Int
        /// The answering side for each subject that other hubs ask about.
        let answers: [PeerSubject: any PeerAnswering]
        let logger: Logger
        /// Called on the service's thread: nil while the hubs act as one, otherwise the reason they do not, as a
        /// sentence without a full stop.
        let report: @Sendable (_ problem: String?) -> Void

        /// - Parameter own: its boot is drawn afresh for each process.
        package init(
            address: RedisAddress, cluster: String, own: HubIdentity, shared: HubShared, rules: PresenceRules,
            restartWindow: Int64, logBytes: Int = 64 << 20, version: String,
            connections: @escaping @Sendable () -> Int,
            answers: [PeerSubject: any PeerAnswering] = [:], logger: Logger,
            report: @escaping @Sendable (_ problem: String?) -> Void
        ) {
            self.address = address
            self.cluster = cluster
            self.own = own
            self.shared = shared
            self.rules = rules
            self.restartWindow = restartWindow
            self.logBytes = logBytes
            self.version = version
            self.connections = connections
            self.answers = answers.merging([.users: UserCountsAnswer(tally: shared.userTally)]) { mine, _ in mine }
            self.logger = logger
            self.report = report
        }
    }
}

/// Mail from other threads to the cluster's thread.
struct ClusterMail: Sendable {
    struct Post: Sendable {
        let loop: Int
        let relays: [Relay]
    }

    struct Question: Sendable {
        let subject: PeerSubject
        let body: [UInt8]
        let hubs: [String]?
        /// Monotonic milliseconds.
        let deadline: Int64
        let done: PeerQuestions.Done
    }

    struct Answer: Sendable {
        let hub: HubIdentity
        let id: UInt64
        let body: [UInt8]?
    }

    /// One part of a hub's user counts; `bytes` is nil if the hub did not answer.
    struct UserCounts: Sendable {
        let hub: HubIdentity
        let part: Int
        let bytes: [UInt8]?
    }

    var posts: [Post] = []
    var userCounts: [UserCounts] = []
    var headWaiters: [@Sendable (Bool) -> Void] = []
    var questions: [Question] = []
    var answers: [Answer] = []
    /// The worker has ended.
    var isClosed = false
    var isDraining = false
    var rules: PresenceRules?
}

/// The cluster's activity for the metrics and the operator's page: counters since the start, and the current state.
package struct ClusterStatistics: Sendable, Equatable {
    package struct Peer: Sendable, Equatable {
        package var name: String
        package var state: PeerTable.State
        /// The peer's version of Roost; nil if it did not send one.
        package var version: String?
        /// The figures from the peer's last beat; empty before the first.
        package var figures: BeatFigures
        /// Presences of the peer known here.
        package var members: Int

        package var isThere: Bool { state == .living || state == .draining }
    }

    /// This hub's name and version.
    package var name = ""
    package var version = ""
    package var isWhole = false
    /// Why the cluster is not whole.
    package var problem: String?
    package var server = ""
    package var epoch: UInt64 = 0
    package var peers: [Peer] = []
    /// The figures this hub reports to the others.
    package var own = BeatFigures()
    package var isDraining = false
    package var ownMembers = 0
    package var isCoordinator = false
    /// Presences of other hubs known here.
    package var foreignMembers = 0
    /// Messages sent to other hubs, and received from them.
    package var sent: UInt64 = 0
    package var received: UInt64 = 0
    package var entries: UInt64 = 0
    /// Messages resent because the log had lost them, and messages given up.
    package var sentAgain: UInt64 = 0
    package var dropped: UInt64 = 0
    /// The number of times entries had to be read again, and the number of times members were told that messages are missing.
    package var healed: UInt64 = 0
    package var gaps: UInt64 = 0
    /// Entries, lines and messages that were unreadable and were skipped.
    package var damaged: UInt64 = 0
    package var disconnects: UInt64 = 0
    package var snapshots: UInt64 = 0
    /// Questions to other hubs; those without an answer in time; and those not asked because too many were open.
    package var questions: UInt64 = 0
    package var questionsUnanswered: UInt64 = 0
    package var questionsRefused: UInt64 = 0
    package var waitingBytes = 0

    package init() {}
}
