import Glibc
import Synchronization

/// Notices Ctrl-C and SIGTERM: while the demo is still being set up, so that it can put away what it started (`Server.run`
/// takes the signals over later), and for commands that end by them.
enum EarlySignal {
    private static let seen = Atomic<Bool>(false)

    static func listen() {
        for number in [SIGINT, SIGTERM] {
            // An atomic store is one of the few things a signal handler may do (signal-safety(7)).
            signal(number) { _ in EarlySignal.seen.store(true, ordering: .relaxed) }
        }
    }

    static var wasSeen: Bool { seen.load(ordering: .relaxed) }
}
