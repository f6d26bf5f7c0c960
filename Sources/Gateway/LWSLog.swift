import CWebSockets
import Logging
import Synchronization

/// lws' own messages, which are about single misbehaving connections: kept for debugging, never on the operator's screen.
enum LWSLog {
    private static let logger = Mutex<Logger?>(nil)

    static func route(to target: Logger) {
        logger.withLock { $0 = target }
        roost_log_to { _, line in
            guard let line else { return }
            let text = String(cString: line)
            LWSLog.logger.withLock { $0 }?.debug("libwebsockets: \(text.split(separator: "\n").first ?? "")")
        }
    }
}
