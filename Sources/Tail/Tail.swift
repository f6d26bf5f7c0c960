import CWebSockets
import Glibc
import Wire

/// Follows one channel of a hub and hands on every event as a line of JSON.
///
/// Runs on the calling thread until told to stop by `onEvent`, and comes back after a lost connection.
package final class Tail {
    package struct Target {
        package var host: String
        package var port: Int
        package var isTLS: Bool
        package var token: String
        package var topic: String
        package var isPrivate: Bool
        /// Entries of `config.postgres_changes`, as JSON text.
        package var changes: [String]

        package init(
            host: String, port: Int, isTLS: Bool, token: String, topic: String, isPrivate: Bool, changes: [String]
        ) {
            self.host = host
            self.port = port
            self.isTLS = isTLS
            self.token = token
            self.topic = topic
            self.isPrivate = isPrivate
            self.changes = changes
        }
    }

    private let target: Target
    private let onEvent: (String) -> Void
    private let onTrouble: (String) -> Void
    private var outgoing: [[UInt8]] = []
    private var incoming: [UInt8] = []
    private var isOpen = false
    private var isOver = false
    private var joinedAt: time_t = 0
    private static let heartbeatMicroseconds: lws_usec_t = 25_000_000

    package init(target: Target, onEvent: @escaping (String) -> Void, onTrouble: @escaping (String) -> Void) {
        self.target = target
        self.onEvent = onEvent
        self.onTrouble = onTrouble
    }

    /// Never returns but with the sentence that says why it cannot go on.
    package func run() -> String {
        lws_set_log_level(0, nil)
        let me = Unmanaged.passUnretained(self).toOpaque()
        guard let context = roost_client_create(tailCallback, me) else { return "libwebsockets made no context" }
        var delay: UInt32 = 1
        while true {
            isOver = false
            isOpen = false
            let path = "/realtime/v1/websocket?apikey=\(target.token)&vsn=2.0.0"
            if roost_client_connect(context, target.host, Int32(target.port), path, target.isTLS ? 1 : 0) != nil {
                while !isOver, lws_service(context, 0) >= 0 {}
            }
            // A connection that lived for a while starts the waiting over.
            if isOpen, time(nil) - joinedAt > 10 { delay = 1 }
            onTrouble("the connection to \(target.host):\(target.port) is gone; trying again in \(delay) s")
            sleep(delay)
            delay = min(delay * 2, 15)
        }
    }

    fileprivate func handle(_ reason: lws_callback_reasons, _ wsi: OpaquePointer, _ bytes: UnsafeRawBufferPointer)
        -> Int32
    {
        switch reason {
        case LWS_CALLBACK_CLIENT_ESTABLISHED:
            isOpen = true
            joinedAt = time(nil)
            let topic = String(decoding: JSONString.encode(target.topic), as: UTF8.self)
            let changes = target.changes.joined(separator: ",")
            let config =
                "{\"config\":{\"private\":\(target.isPrivate),\"presence\":{\"enabled\":true},\"postgres_changes\":[\(changes)]}}"
            outgoing = [Array("[\"1\",\"1\",\(topic),\"phx_join\",\(config)]".utf8)]
            lws_callback_on_writable(wsi)
            lws_set_timer_usecs(wsi, Self.heartbeatMicroseconds)
        case LWS_CALLBACK_TIMER:
            outgoing.append(Array("[null,\"h\",\"phoenix\",\"heartbeat\",{}]".utf8))
            lws_callback_on_writable(wsi)
            lws_set_timer_usecs(wsi, Self.heartbeatMicroseconds)
        case LWS_CALLBACK_CLIENT_WRITEABLE:
            guard !outgoing.isEmpty else { return 0 }
            let text = outgoing.removeFirst()
            if roost_client_send(wsi, text, text.count) != 0 { return -1 }
            if !outgoing.isEmpty { lws_callback_on_writable(wsi) }
        case LWS_CALLBACK_CLIENT_RECEIVE:
            incoming += bytes
            guard lws_is_final_fragment(wsi) != 0, lws_remaining_packet_payload(wsi) == 0 else { return 0 }
            report(incoming, isBinary: lws_frame_is_binary(wsi) != 0)
            incoming = []
        case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
            if !bytes.isEmpty { onTrouble(String(decoding: bytes, as: UTF8.self)) }
            isOver = true
        case LWS_CALLBACK_CLIENT_CLOSED:
            isOver = true
        default:
            break
        }
        return 0
    }

    private func report(_ message: [UInt8], isBinary: Bool) {
        if isBinary {
            guard let text = Self.text(ofBinary: message) else { return }
            return onEvent(text)
        }
        let parts: [JSON]
        do { parts = try JSON(parsing: message).elements } catch {
            return onTrouble("the hub sent something that is not JSON")
        }
        guard parts.count == 5, parts[2].string != "phoenix" else { return }
        onEvent("{\"event\":\(parts[3]),\"payload\":\(parts[4])}")
    }

    /// A frame of kind 4, in the words of the text form.
    private static func text(ofBinary frame: [UInt8]) -> String? {
        guard frame.count >= 5, frame[0] == 4 else { return nil }
        let lengths = frame[1...3].map(Int.init)
        let start = 5 + lengths.reduce(0, +)
        guard frame.count >= start else { return nil }
        let event = String(decoding: frame[(5 + lengths[0])..<(5 + lengths[0] + lengths[1])], as: UTF8.self)
        let encoding = UserBroadcast.Encoding(rawValue: frame[4]) ?? .raw
        let broadcast = UserBroadcast(event: event, encoding: encoding, payload: frame[start...], metadata: nil)
        if let payload = broadcast.textPayload() {
            return "{\"event\":\"broadcast\",\"payload\":\(String(decoding: payload, as: UTF8.self))}"
        }
        let name = String(decoding: JSONString.encode(event), as: UTF8.self)
        return "{\"event\":\"broadcast\",\"payload\":{\"event\":\(name),\"bytes\":\(frame.count - start)}}"
    }
}

private func tailCallback(
    _ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?,
    _ input: UnsafeMutableRawPointer?, _ length: Int
) -> Int32 {
    guard let wsi, let context = lws_get_context(wsi), let owner = lws_context_user(context) else { return 0 }
    let bytes = UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : length)
    return Unmanaged<Tail>.fromOpaque(owner).takeUnretainedValue().handle(reason, wsi, bytes)
}
