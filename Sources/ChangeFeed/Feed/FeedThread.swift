import CPostgres
import Glibc

/// One thread of our own: libpq and a consumer that may block have no business on Swift's shared pool.
final class FeedThread: Sendable {
    private final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private let handle: pthread_t

    init(_ body: @escaping @Sendable () -> Void) {
        var handle = pthread_t()
        let start = Unmanaged.passRetained(Start(body))
        let status = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                roost_name_thread("roost-feed")
                Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, start.toOpaque())
        precondition(status == 0, "no thread left for the feed")
        self.handle = handle
    }

    func join() { pthread_join(handle, nil) }
}
