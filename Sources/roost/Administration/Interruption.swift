import Glibc

/// Ctrl-C and SIGTERM, for commands that have something to end in good order.
enum Interruption {
    /// From here on none is lost, whenever `wait` begins.
    static func listen() { EarlySignal.listen() }

    /// Returns soon after the first of them, or when the task is cancelled. A second one ends the process: whoever
    /// presses Ctrl-C twice does not want to wait.
    static func wait() async {
        // Looked at now and then, because all that a handler may safely do is to leave a note.
        while !EarlySignal.wasSeen {
            do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
        }
        for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
    }
}
