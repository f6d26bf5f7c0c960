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
            let first = text.split(separator: "\n").first ?? ""
            LWSLog.logger.withLock { $0 }?.debug("libwebsockets: \(LWSLog.withoutSecrets(first))")
        }
    }

    /// lws may quote what a peer sent, and that may be a token: its lines end where a query, an assignment or a JWT
    /// (RFC 7515: all of them begin with `{"` in base 64) would begin.
    private static func withoutSecrets(_ line: Substring) -> String {
        let marks = [line.firstIndex { $0 == "?" || $0 == "=" }, line.firstRange(of: "eyJ")?.lowerBound]
        guard let end = marks.compactMap({ $0 }).min() else { return String(line) }
        return line[..<end] + "…"
    }
}
