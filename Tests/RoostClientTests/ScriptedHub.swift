import RoostClient
import Wire

/// A transport whose hub answers each join and each leave, and else says what the test has it say.
final class ScriptedHub: WebSocketTransport, WebSocketConnection {
    private let frames = Mailbox<WebSocketFrame>(limit: .max)
    private let topic: String

    /// - Parameter topic: of the one channel that there is.
    init(_ topic: String = "realtime:room") { self.topic = topic }

    func open(_ request: WebSocketRequest) async throws(TransportFailure) -> any WebSocketConnection { self }

    func send(_ frame: WebSocketFrame) {
        guard let message = ServerMessage(frame), ["phx_join", "phx_leave"].contains(message.event) else { return }
        let asked = message.payload?["config"]?["postgres_changes"]?.elements.count ?? 0
        let granted = (0..<asked).map { "{\"id\":\($0 + 1)}" }.joined(separator: ",")
        say("phx_reply", "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[\(granted)]}}", message)
        guard asked > 0 else { return }
        say("system", "{\"extension\":\"postgres_changes\",\"status\":\"ok\",\"message\":\"Subscribed\"}")
    }

    var pendingBytes: Int { 0 }

    func receive() async throws(TransportFailure) -> WebSocketFrame {
        do throws(RoostError) {
            if case .element(let frame) = try await frames.next() { return frame }
        } catch {
            // This buffer is never finished with an error.
        }
        throw .cancelled
    }

    func close() { frames.finish() }

    func say(_ frame: WebSocketFrame) { frames.put(frame) }

    /// A frame of the room, in answer to a message or of the hub's own accord.
    func say(_ event: String, _ payload: String, _ message: ServerMessage? = nil) {
        func json(_ text: String?) -> String { text.map { "\"\($0)\"" } ?? "null" }
        let refs = "\(json(message?.joinRef)),\(json(message?.ref))"
        say(.text(Array("[\(refs),\"\(topic)\",\"\(event)\",\(payload)]".utf8)))
    }
}
