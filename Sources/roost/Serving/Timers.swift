import Dispatch

/// What the process waits with until a time has come.
enum Timers {
    /// Opens the descriptors of Dispatch's timers while there are some left. Dispatch makes one for each clock with the first timer of that
    /// clock. Without room for it that timer never ends, such as a pause of the drain; without room for what waits for all of them the
    /// process ends (libdispatch, event_epoll.c). To be called before the hub takes connections.
    static func open() async throws {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { continuation.resume() }
        }
        try await Task.sleep(for: .milliseconds(1))
    }
}
