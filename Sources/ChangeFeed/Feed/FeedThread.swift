import CPostgres
import Glibc

/// One thread of our own: libpq and a consumer that may block have no business on Swift's shared pool.
package final class FeedThread: Sendable {
    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    private let handle: pthread_t

    /// - Parameter name: up to 15 bytes, as Linux shows it.
    package init(named name: String = "roost-feed", _ body: @escaping @Sendable () -> Void) {
        var handle = pthread_t()
        let start = Unmanaged.passRetained(Start(name, body))
        let status = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                roost_name_thread(start.name)
                start.body()
                return nil
            }, start.toOpaque())
        precondition(status == 0, "no thread left for the feed")
        self.handle = handle
    }

    package func join() { pthread_join(handle, nil) }
}
