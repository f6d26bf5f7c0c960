import Dispatch
import Glibc
import Synchronization

/// The signals that Roost answers instead of ending by them: SIGINT (Ctrl-C) and SIGTERM, which ask it to end in good
/// order, and SIGHUP, which asks a running hub to read its configuration again.
enum Signals {
    /// Where handlers leave the number of their signal: the writing end of a pipe, -1 before `listen`.
    private static let descriptor = Atomic<Int32>(-1)
    private static let interrupted = Atomic<Bool>(false)
    private static let interruptions = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    private static let hangUpNotes = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// From here on these end nothing: what comes before anybody waits for it is kept. May be called again, for more of
    /// them; on one thread.
    static func listen(to numbers: [Int32]) {
        if descriptor.load(ordering: .relaxed) < 0 { openPipe() }
        for number in numbers {
            signal(number) { number in
                // To write and to store an atomic are among the few things that a handler may do (signal-safety(7)).
                let before = errno
                if number != SIGHUP { Signals.interrupted.store(true, ordering: .relaxed) }
                var note = UInt8(truncatingIfNeeded: number)
                _ = Glibc.write(Signals.descriptor.load(ordering: .relaxed), &note, 1)
                errno = before
            }
        }
    }

    /// Whether SIGINT or SIGTERM came since `listen`.
    static var wasInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Returns after the first SIGINT or SIGTERM since `listen`, or when the task is cancelled. Another one ends the process
    /// then: whoever asks twice does not want to wait. For one waiter.
    static func interruption() async {
        for await _ in interruptions.stream { break }
        for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
    }

    /// One for each SIGHUP; those that come while one is handled are one. For one reader.
    static var hangUps: AsyncStream<Void> { hangUpNotes.stream }

    private static func openPipe() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { preconditionFailure("no file descriptor left for signals") }
        let (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // A handler must not wait. A pipe that is full holds thousands of notes, so the one that finds no room says nothing
        // that they do not.
        _ = fcntl(writer, F_SETFL, O_NONBLOCK)
        descriptor.store(writer, ordering: .relaxed)
        // Waits for the process' whole life, on a thread of its own.
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
