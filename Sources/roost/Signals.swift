import Dispatch
import Glibc
import Synchronization

/// The signals that Roost handles: SIGINT (Ctrl-C) and SIGTERM request an orderly end, and SIGHUP requests a reload of
/// a running hub's configuration.
enum Signals {
    /// The writing end of a pipe in which handlers leave their signal's number; -1 before the first handler is set.
    private static let descriptor = Atomic<Int32>(-1)
    private static let interrupted = Atomic<Bool>(false)
    private static let interruptions = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    private static let hangUpNotes = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// Handles these signals instead of letting them end the process; early ones are kept until something waits for
    /// them. May be called again to add signals; on one thread.
    static func handleSignals(to numbers: [Int32]) {
        if descriptor.load(ordering: .relaxed) < 0 { openPipe() }
        for number in numbers {
            signal(number) { number in
                // Writing and storing an atomic are among the few things that a handler may do (signal-safety(7)).
                let before = errno
                if number != SIGHUP { Signals.interrupted.store(true, ordering: .relaxed) }
                var note = UInt8(truncatingIfNeeded: number)
                _ = Glibc.write(Signals.descriptor.load(ordering: .relaxed), &note, 1)
                errno = before
            }
        }
    }

    /// Whether SIGINT or SIGTERM arrived since their handlers were set.
    static var wasInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Returns after the first SIGINT or SIGTERM since their handlers were set, or when the task is cancelled. Afterwards
    /// another one ends the process: a user who asks twice does not want to wait. For one waiter.
    static func waitForInterruption() async {
        for await _ in interruptions.stream { break }
        for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
    }

    /// One element for each SIGHUP; those that arrive while one is handled count as one. For one consumer.
    static var hangUps: AsyncStream<Void> { hangUpNotes.stream }

    private static func openPipe() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { preconditionFailure("no file descriptor left for signals") }
        let (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // A handler must not block. A full pipe holds thousands of notes, so a note that does not fit adds nothing.
        _ = fcntl(writer, F_SETFL, O_NONBLOCK)
        descriptor.store(writer, ordering: .relaxed)
        // Blocks for the life of the process, on a thread of its own.
        DispatchQueue(label: "roost.signals").async {
            var notes = [UInt8](repeating: 0, count: 64)
            while true {
                let count = Glibc.read(reader, &notes, notes.count)
                guard count > 0 || errno == EINTR else { return }
                for note in notes.prefix(max(0, count)) {
                    (Int32(note) == SIGHUP ? hangUpNotes : interruptions).continuation.yield()
                }
            }
        }
    }
}
