import Hub
import Synchronization
import Wire

/// In place of the loops: what they are handed, in words, and taken at once unless a test holds it back.
final class LoopsInPlace: FeedSink {
    private struct Content {
        var lines: [[String]]
        var isHeld = false
        var held: [@Sendable () -> Void] = []
    }

    let loopCount: Int
    private let content: Mutex<Content>

    init(_ count: Int = 2) {
        loopCount = count
        content = Mutex(Content(lines: Array(repeating: [], count: count)))
    }

    /// `realtime:room:1 {"n":1}` with the payload alone, or `gap`.
    func lines(_ loop: Int = 0) -> [String] { content.withLock { $0.lines[loop] } }

    func deliverEvents(_ events: [FeedEvent], to loop: Int, whenTaken: @escaping @Sendable () -> Void) {
        let lines = events.map(Self.line)
        let isHeld = content.withLock { content in
            content.lines[loop] += lines
            if content.isHeld { content.held.append(whenTaken) }
            return content.isHeld
        }
        if !isHeld { whenTaken() }
    }

    func hold() { content.withLock { $0.isHeld = true } }

    func release() {
        let held = content.withLock { content in
            defer { content.held = [] }
            content.isHeld = false
            return content.held
        }
        for whenTaken in held { whenTaken() }
    }

    private static func line(_ event: FeedEvent) -> String {
        switch event {
        case .broadcast(let message):
            guard case .text(let bytes) = message.broadcast else { return "binary" }
            let payload = JSON(trusted: bytes[...])["payload"]?.description ?? ""
            return (message.key.isPrivate ? "private " : "") + "\(message.key.topic) \(payload)"
        case .broadcastGap: return "gap"
        default: return "\(event)"
        }
    }
}
