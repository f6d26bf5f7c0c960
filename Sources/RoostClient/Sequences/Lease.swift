/// Somebody listens; when the last holder lets go, the engine is told.
final class Lease: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
