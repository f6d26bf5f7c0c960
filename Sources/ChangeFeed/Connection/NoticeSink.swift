import CPostgres
import Logging

/// Sends Postgres' notices and warnings to the log.
final class NoticeSink {
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    /// The sink must outlive the connection; the connection owns it.
    func attach(to connection: OpaquePointer) {
        _ = PQsetNoticeProcessor(
            connection,
            { context, message in
                guard let context, let message else { return }
                let sink = Unmanaged<NoticeSink>.fromOpaque(context).takeUnretainedValue()
                sink.logger.debug("Postgres says: \(String(cString: message).trimmed)")
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}
