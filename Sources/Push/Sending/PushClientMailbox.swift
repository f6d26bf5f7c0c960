import CCurl
import Hub
import Synchronization

/// The input of the client's thread from other threads, and the figures it publishes for them. Safe from any thread.
final class PushClientMailbox: Sendable {
    private struct Contents {
        var inbox: [Push] = []
        /// The number of notifications without an outcome, including those in the inbox.
        var held = 0
        /// The time by which the client must have stopped, in monotonic milliseconds; nil while it is not being stopped.
        var stopBy: Int64?
        var hasEnded = false
        var statistics = PushStatistics()
    }

    /// libcurl lets any thread wake a multi handle (curl_multi_wakeup(3)), and nothing else is done with it here. The call is made
    /// under the mutex and never after `end`, so the set still exists.
    private struct Sleeper: @unchecked Sendable {
        let set: OpaquePointer
        func wake() { roost_http2_wake(set) }
    }

    private let contents = Mutex(Contents())
    private let sleeper: Sleeper

    init(waking set: OpaquePointer) { sleeper = Sleeper(set: set) }

    /// - Returns: false if the client has ended, and nothing takes them any more.
    func post(_ pushes: [Push]) -> Bool {
        contents.withLock { contents in
            guard !contents.hasEnded else { return false }
            // A non-empty inbox was preceded by a wake-up that is still pending.
            let mustWake = contents.inbox.isEmpty
            contents.inbox += pushes
            contents.held += pushes.count
            if mustWake { sleeper.wake() }
            return true
        }
    }

    func stop(by time: Int64) {
        contents.withLock { contents in
            guard !contents.hasEnded, contents.stopBy == nil else { return }
            contents.stopBy = time
            sleeper.wake()
        }
    }

    func take() -> (pushes: [Push], stopBy: Int64?) {
        contents.withLock { contents in
            defer { contents.inbox = [] }
            return (contents.inbox, contents.stopBy)
        }
    }

    func settle(_ count: Int, _ statistics: PushStatistics) {
        contents.withLock {
            $0.held -= count
            $0.statistics = statistics
        }
    }

    /// Ends the mailbox: it accepts nothing more.
    ///
    /// - Returns: the last notifications to come in.
    func end() -> [Push] {
        contents.withLock { contents in
            defer { contents.inbox = [] }
            contents.hasEnded = true
            return contents.inbox
        }
    }

    var held: Int { contents.withLock { $0.held } }
    var statistics: PushStatistics { contents.withLock { $0.statistics } }
}
