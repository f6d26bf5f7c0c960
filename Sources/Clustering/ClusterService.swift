package import Cluster
package import Hub
package import Logging
package import Redis
import Workers

/// Makes several hubs act as one: tells the others what happens here, and the loops what happens there.
///
/// One thread, `roost-cluster`, which has the link with Redis. Nobody ever waits for it. While the link is away, everything local goes
/// on, and what the others are to be told is kept for ten seconds; what is lost then, they are told (`LogReader`).
///
/// Safe from any thread.
package final class ClusterService: PeerService {
    private let setup: Setup
    let mailbox = WorkerMailbox<ClusterMail>(ClusterMail())
    private let stopSignal = StopSignal()
    private let published = Published(ClusterStatistics())
    private let thread = WorkerThread(named: "roost-cluster")

    package init(_ setup: Setup) { self.setup = setup }

    /// Starts the thread; it connects, and keeps trying. Once in the life of a service.
    package func start(telling sink: any PeerSink) {
        let (setup, mailbox, stopSignal, published) = (setup, mailbox, stopSignal, published)
        thread.start {
            var worker = ClusterWorker(setup, sink, mailbox, stopSignal, published)
            worker.run()
        }
    }

    /// Says good-bye to the others and ends the thread. One that hangs is left behind: whoever stops the service is about to end the
    /// process.
    package func stop(within patience: Duration = .seconds(1)) {
        stopSignal.stop(by: .now + patience)
        thread.join(by: .now + patience)
    }

    package func post(_ relays: [Relay], from loop: Int) {
        mailbox.post { $0.posts.append(ClusterMail.Post(loop: loop, relays: relays)) }
    }

    /// Waits until other hubs are found, or this one was in the log for long enough to know that there are none.
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
            // Each of them says so twice a second.
            if let wholeSince, .now - wholeSince > .milliseconds(1200) { return false }
            _ = pause.wait(until: .now + .milliseconds(20))
        }
        return false
    }

    /// Waits until the log is read to where its head is behind this call, and the loops are handed what it had.
    ///
    /// - Parameter done: is told on the service's thread; false where the hubs do not act as one now.
    package func awaitHead(_ done: @escaping @Sendable (Bool) -> Void) {
        let isPosted = mailbox.post { mail in
            if !mail.isClosed { mail.headWaiters.append(done) }
            return !mail.isClosed
        }
        if !isPosted { done(false) }
    }

    /// Others know from here on that clients leave this hub, and expect them. From any thread.
    package func drain() { mailbox.post { $0.isDraining = true } }

    /// Other windows from here on.
    package func adopt(_ rules: PresenceRules) { mailbox.post { $0.rules = rules } }

    /// From any thread; a moment old.
    package var statistics: ClusterStatistics { published.value }

    /// What a service works with.
    package struct Setup: Sendable {
        let address: RedisAddress
        let cluster: String
        let own: HubIdentity
        let shared: HubShared
        let rules: PresenceRules
        /// For how long those count who were on a hub that drains, in milliseconds.
        let restartWindow: Int64
        /// Bytes that the log in Redis keeps, about.
        let logBytes: Int
        /// Which version of Roost this is, as others show it.
        let version: String
        /// WebSockets that are open on this hub.
        let connections: @Sendable () -> Int
        /// Who answers what other hubs ask.
        let answers: [PeerSubject: any PeerAnswering]
        let logger: Logger
        /// Called on the service's thread: nil while the hubs act as one, else why they do not, a sentence without a full stop.
        let report: @Sendable (_ problem: String?) -> Void

        /// - Parameter own: its boot is drawn anew for each process.
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

/// What other threads leave for the cluster's.
struct ClusterMail: Sendable {
    struct Post: Sendable {
        let loop: Int
        let relays: [Relay]
    }

    struct Question: Sendable {
        let subject: PeerSubject
        let body: [UInt8]
        let hubs: [String]?
        /// In monotonic milliseconds.
        let deadline: Int64
        let done: PeerQuestions.Done
    }

    struct Answer: Sendable {
        let hub: HubIdentity
        let id: UInt64
        let body: [UInt8]?
    }

    /// A part of the counts of a hub's users; nil where there was no answer.
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

/// What the cluster does, for the metrics and the operator's page: counters since the start, and what is so now.
package struct ClusterStatistics: Sendable, Equatable {
    package struct Peer: Sendable, Equatable {
        package var name: String
        package var state: PeerTable.State
        /// Which version of Roost it is; nil where it did not say so.
        package var version: String?
        /// What it says of itself; empty for one that said nothing yet.
        package var figures: BeatFigures
        /// Presences of it that are known here.
        package var members: Int

        package var isThere: Bool { state == .living || state == .draining }
    }

    /// This hub's name and version.
    package var name = ""
    package var version = ""
    package var isWhole = false
    /// Why it is not.
    package var problem: String?
    package var server = ""
    package var epoch: UInt64 = 0
    package var peers: [Peer] = []
    /// What this hub says of itself to the others.
    package var own = BeatFigures()
    package var isDraining = false
    package var ownMembers = 0
    package var isCoordinator = false
    /// Presences of other hubs that are known here.
    package var foreignMembers = 0
    /// Messages that others were told, and that came from them.
    package var sent: UInt64 = 0
    package var received: UInt64 = 0
    package var entries: UInt64 = 0
    /// Messages that were sent again because the log had lost them, and those that were given up.
    package var sentAgain: UInt64 = 0
    package var dropped: UInt64 = 0
    /// Times that entries had to be read again, and times that members were told that messages are missing.
    package var healed: UInt64 = 0
    package var gaps: UInt64 = 0
    /// Entries, lines and messages that could not be read, and were passed over.
    package var damaged: UInt64 = 0
    package var disconnects: UInt64 = 0
    package var snapshots: UInt64 = 0
    /// Questions to other hubs; those without an answer in time, and those that were not asked because too many were open.
    package var questions: UInt64 = 0
    package var questionsUnanswered: UInt64 = 0
    package var questionsRefused: UInt64 = 0
    package var waitingBytes = 0

    package init() {}
}
