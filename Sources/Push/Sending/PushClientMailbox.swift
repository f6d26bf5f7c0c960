import CCurl
import Hub
import Synchronization

/// What other threads give to the client's thread, and what it publishes for them. Safe from any thread.
final class PushClientMailbox: Sendable {
    private struct Contents {
        var inbox: [Push] = []
        /// How many notifications have no outcome yet, those in the inbox included.
        var held = 0
        /// When the client is to have stopped, in monotonic milliseconds; nil as long as nobody wants it to.
        var stopBy: Int64?
        var hasEnded = false
        var statistics = PushStatistics()
    }

    /// libcurl lets any thread wake a multi handle (curl_multi_wakeup(3)), and that is all that is done with it here.
    /// It is done under the mutex and not after `end`, so the set is never gone by then.
    private struct Sleeper: @unchecked Sendable {
        let set: OpaquePointer
        func wake() { roost_http2_wake(set) }
    }

    private let contents = Mutex(Contents())
    private let sleeper: Sleeper

    init(waking set: OpaquePointer) { sleeper = Sleeper(set: set) }

    /// - Returns: false where the client has ended, and nobody takes them any more.
    func post(_ pushes: [Push]) -> Bool {
        contents.withLock { contents in
            guard !contents.hasEnded else { return false }
            // One that finds others there was preceded by a wake-up that is not answered yet.
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

    /// Ends the mailbox: nothing is taken from here on.
    ///
    /// - Returns: what came in last.
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
