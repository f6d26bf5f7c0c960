import Dispatch
import Glibc
import Synchronization

/// SIGHUP, which asks a running hub to read its configuration again. Several that come while one is handled are one.
enum HangUp {
    /// Where the handler leaves its note: the writing end of a pipe, -1 before `listen`.
    private static let descriptor = Atomic<Int32>(-1)
    private static let pair = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// One for each time that somebody asked, from `listen` on. For one reader.
    static var signals: AsyncStream<Void> { pair.stream }

    /// From here on SIGHUP ends nothing: one that comes before anybody reads `signals` waits there. Once.
    static func listen() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { preconditionFailure("no file descriptor left for signals") }
        let (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // A handler must not wait; a note that finds no room has company enough.
        _ = fcntl(writer, F_SETFL, O_NONBLOCK)
        descriptor.store(writer, ordering: .relaxed)
        signal(SIGHUP) { _ in
            // To write is one of the few things a signal handler may do (signal-safety(7)).
            let number = errno
            var note: UInt8 = 1
            _ = Glibc.write(HangUp.descriptor.load(ordering: .relaxed), &note, 1)
            errno = number
        }
        // Waits for the process' whole life, on a thread of its own.
        DispatchQueue(label: "roost.hangup").async {
            var notes = [UInt8](repeating: 0, count: 64)
            while true {
                let count = Glibc.read(reader, &notes, notes.count)
                guard count > 0 || errno == EINTR else { return }
                if count > 0 { pair.continuation.yield() }
            }
        }
    }
}
