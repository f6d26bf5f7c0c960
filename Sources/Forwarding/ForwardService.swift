package import Logging
package import Streams
import Synchronization
package import Webhooks
import Wire
import Workers

/// Passes clients' requests on to the application's backend (`streams.routes` with `forward`), on its own thread, and
/// appends the backend's answer to the request's stream as it arrives.
///
/// A request is sent only once, whatever happens. If its answer breaks off, is a refusal or does not come, the stream
/// ends as aborted, after an event in the application's own format; the same happens when the hub stops. An answer that
/// arrives faster than it can be stored waits in the backend's socket.
package final class ForwardService: StreamForwarder {
    package struct Setup: Sendable {
        package var secret: WebhookSecret
        /// A JSON value; `$reason` in it is replaced by the raw value of `ForwardFailure`.
        package var errorEvent: String
        /// How long the backend may be silent before its answer begins.
        package var patience: Duration
        package var limits = Limits()

        package init(secret: WebhookSecret, errorEvent: String, patience: Duration) {
            self.secret = secret
            self.errorEvent = errorEvent
            self.patience = patience
        }
    }

    package struct Limits: Sendable {
        /// The most requests under way, in total and for one owner.
        package var count = 5000
        package var countPerOwner = 20
        /// The most bytes in one message of an answer.
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
        thread.start { [self] in ForwardWorker(setup, streams, self, published, logger)?.runUntilStopped(mailbox) }
    }

    /// Ends the requests under way, each with its event, and the thread.
    package func stop(within time: Duration) {
        mailbox.post { $0.isStopping = true }
        thread.join(by: .now + time)
    }

    package var statistics: Statistics { published.value }

    package func reserveRoom(for owner: StreamOwner?) -> Bool {
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

    package func returnRoom(for owner: StreamOwner?) {
        shares.withLock { shares in
            shares.count -= 1
            guard let owner, let his = shares.ofOwners[owner] else { return }
            shares.ofOwners[owner] = his > 1 ? his - 1 : nil
        }
    }

    package func forwardRequest(_ forward: StreamForward) {
        mailbox.post { $0.forwards.append(forward) }
    }

    package func verifyTicket(_ ticket: String) -> StreamTicket? {
        ForwardTicket.decodeTicket(ticket, by: setup.secret)
    }

    /// The number under which the service watches streams, as loops do under theirs.
    package static let watcher = -1

    /// A watched stream changed. If it has ended, its backend must stop.
    package func streamChanged(_ stream: StreamBuffer) {
        stream.noteSeen(by: Self.watcher)
        guard stream.isGone || stream.snapshot.status.ending != nil else { return }
        mailbox.post { $0.ended.append(stream.id) }
    }
}

/// Why a request that was passed on has no complete answer, as reported to the application.
package enum ForwardFailure: String, Sendable, CaseIterable {
    /// There was no connection.
    case unreachable
    /// The backend was silent for too long.
    case timeout
    /// The answer broke off.
    case broken
    /// The status is not 2xx.
    case refused
    /// The answer does not fit a stream of JSON, or is too large.
    case invalid
    /// The row of `streams.on_close` could not be written.
    case row
    /// The hub is stopping.
    case restarting
}
