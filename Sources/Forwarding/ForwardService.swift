package import Logging
package import Streams
import Synchronization
package import Webhooks
import Wire
import Workers

/// Passes requests of clients on to the application's backend (`streams.routes` with `forward`), from a thread of its own, and appends
/// what the backend answers to the request's stream as it comes.
///
/// A request is sent once, whatever happens. An answer that breaks off, is refused or does not come ends its stream as aborted, behind an
/// event in the application's own shape; so does the end of the hub. What comes faster than it can be kept waits in the backend's socket.
package final class ForwardService: StreamForwarder {
    package struct Setup: Sendable {
        package var secret: WebhookSecret
        /// A JSON value; `$reason` in it stands for a word of `ForwardFailure`.
        package var errorEvent: String
        /// For which the backend may be silent before its answer begins.
        package var patience: Duration
        package var limits = Limits()

        package init(secret: WebhookSecret, errorEvent: String, patience: Duration) {
            self.secret = secret
            self.errorEvent = errorEvent
            self.patience = patience
        }
    }

    package struct Limits: Sendable {
        /// Under way at once, of all and of one owner.
        package var count = 5000
        package var countPerOwner = 20
        /// Of one message of an answer.
        package var message = 1_048_576

        package init() {}
    }

    package struct Statistics: Sendable {
        package var underWay = 0
        package var passedOn = 0
        package var failed: [ForwardFailure: Int] = [:]
    }

    struct Mail {
        var forwards: [StreamForward] = []
        var answers: [(id: UInt64, answer: StreamAnswer)] = []
        var ended: [StreamID] = []
        var isStopping = false
    }

    private struct Shares {
        var count = 0
        var ofOwners: [StreamOwner: Int] = [:]
    }

    private let setup: Setup
    private let streams: any StreamService
    private let logger: Logger
    private let shares = Mutex(Shares())
    private let published = Published(Statistics())
    private let mailbox = WorkerMailbox(Mail())
    private let thread = WorkerThread(named: "roost-forward")

    package init(_ setup: Setup, _ streams: any StreamService, logger: Logger) {
        self.setup = setup
        self.streams = streams
        self.logger = logger
    }

    package func start() {
        thread.start { [self] in ForwardWorker(setup, streams, self, published, logger)?.run(mailbox) }
    }

    /// Ends what is under way, each with its event, and the thread.
    package func stop(within time: Duration) {
        mailbox.post { $0.isStopping = true }
        thread.join(by: .now + time)
    }

    package var statistics: Statistics { published.value }

    package func reserve(for owner: StreamOwner?) -> Bool {
        shares.withLock { shares in
            guard shares.count < setup.limits.count else { return false }
            if let owner {
                let his = shares.ofOwners[owner, default: 0]
                guard his < setup.limits.countPerOwner else { return false }
                shares.ofOwners[owner] = his + 1
            }
            shares.count += 1
            return true
        }
    }

    package func giveBack(for owner: StreamOwner?) {
        shares.withLock { shares in
            shares.count -= 1
            guard let owner, let his = shares.ofOwners[owner] else { return }
            shares.ofOwners[owner] = his > 1 ? his - 1 : nil
        }
    }

    package func forward(_ forward: StreamForward) {
        mailbox.post { $0.forwards.append(forward) }
    }

    package func verify(_ ticket: String) -> StreamTicket? { ForwardTicket.ticket(ticket, by: setup.secret) }

    /// By which it watches streams, as loops do by theirs (`StreamService.watch`).
    package static let watcher = -1

    /// A stream that it watches changed. If that has ended, its backend is to stop.
    package func streamChanged(_ stream: StreamBuffer) {
        stream.noteSeen(by: Self.watcher)
        guard stream.isGone || stream.snapshot.status.ending != nil else { return }
        mailbox.post { $0.ended.append(stream.id) }
    }
}

/// Why a request that was passed on has no whole answer, as the application is told.
package enum ForwardFailure: String, Sendable, CaseIterable {
    /// No connection.
    case unreachable
    /// It was silent for too long.
    case timeout
    /// Its answer broke off.
    case broken
    /// Its status is none of 2xx.
    case refused
    /// Its answer is not what a stream of JSON takes, or too large.
    case invalid
    /// The row of `streams.on_close` could not be written.
    case row
    /// The hub ends.
    case restarting
}
