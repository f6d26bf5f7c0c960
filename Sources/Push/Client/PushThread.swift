import CCurl
import Glibc
import Synchronization

/// One thread of our own: what waits in libcurl has no business on Swift's shared pool.
final class PushThread: Sendable {
    private final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private let handle: pthread_t
    private let isJoined = Mutex(false)

    init(_ body: @escaping @Sendable () -> Void) {
        var handle = pthread_t()
        let start = Unmanaged.passRetained(Start(body))
        let status = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                roost_apns_begin_thread()
                start.body()
                return nil
            }, start.toOpaque())
        precondition(status == 0, "no thread left for APNs")
        self.handle = handle
    }

    /// Waits for its end; who comes second waits with the first.
    func joinOnce() {
        isJoined.withLock { isJoined in
            if !isJoined { pthread_join(handle, nil) }
            isJoined = true
        }
    }
}
