import Wire

/// Frames as the published clients write them.
enum ClientText {
    static let topic = "realtime:conversation:\(ChatTable.conversation(1))"

    static func frame(
        _ event: String, _ payload: String, topic: String = topic, _ version: ProtocolVersion = .v2
    ) -> [UInt8] {
        switch version {
        case .v1, .events:
            Array(
                #"{"topic":"\#(topic)","event":"\#(event)","payload":\#(payload),"ref":"7","join_ref":"1"}"#.utf8)
        case .v2: Array(#"["1","7","\#(topic)","\#(event)",\#(payload)]"#.utf8)
        }
    }

    static func heartbeat(_ version: ProtocolVersion = .v2) -> [UInt8] {
        switch version {
        case .v1, .events: Array(#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"7"}"#.utf8)
        case .v2: Array(#"[null,"7","phoenix","heartbeat",{}]"#.utf8)
        }
    }

    /// - Parameter token: none, and the token that the socket was opened with counts.
    static func join(
        topic: String = topic, presenceKey: String? = nil, changes: String = "[]", acknowledges: Bool = false,
        token: String? = nil, _ version: ProtocolVersion = .v2
    ) -> [UInt8] {
        let broadcast = #"{"ack":\#(acknowledges),"self":false}"#
        let presence = #"{"key":"\#(presenceKey ?? "")","enabled":\#(presenceKey != nil)}"#
        let config =
            #"{"broadcast":\#(broadcast),"presence":\#(presence),"postgres_changes":\#(changes),"private":false}"#
        let access = token.map { #","access_token":"\#($0)""# } ?? ""
        return frame("phx_join", #"{"config":\#(config)\#(access)}"#, topic: topic, version)
    }

    static func leave(topic: String = topic) -> [UInt8] { frame("phx_leave", "{}", topic: topic) }

    /// 150 bytes of payload, as the fan-out of loadtest/bench.
    static let broadcastPayload = Array(
        (#"{"type":"broadcast","event":"m","payload":{"t":""# + String(repeating: "x", count: 98) + #""}}"#).utf8)

    static func broadcast(topic: String = topic, _ version: ProtocolVersion = .v2) -> [UInt8] {
        frame("broadcast", String(decoding: broadcastPayload, as: UTF8.self), topic: topic, version)
    }

    static func typing(_ isTyping: Bool) -> [UInt8] {
        frame(
            "broadcast",
            #"{"type":"broadcast","event":"typing","payload":{"typing":\#(isTyping),"name":"Ada Lovelace"}}"#)
    }

    static func track(_ version: ProtocolVersion = .v2, status: String = "online") -> [UInt8] {
        frame("presence", #"{"type":"presence","event":"track","payload":\#(payload(status: status))}"#, version)
    }

    static let untrack = frame("presence", #"{"type":"presence","event":"untrack"}"#)

    static func accessToken(_ version: ProtocolVersion = .v2) -> [UInt8] {
        frame("access_token", #"{"access_token":"\#(token)"}"#, version)
    }

    /// What a member says of itself.
    static func payload(status: String) -> String {
        #"{"user_id":"0b1f3c52-7a0e-4c53-9f59-3f6f5a2c8d11","name":"Ada Lovelace","status":"\#(status)"}"#
    }

    /// A binary frame of kind 3.
    static let binary: [UInt8] = {
        let fields = ["1", "7", topic, "m", ""].map { Array($0.utf8) }
        return [3] + fields.map { UInt8($0.count) } + [UserBroadcast.Encoding.json.rawValue] + fields.joined()
            + binaryPayload
    }()

    static let binaryPayload = Array((#"{"t":""# + String(repeating: "x", count: 98) + #""}"#).utf8)

    /// As long as the tokens that Supabase Auth hands out.
    static let token = String(repeating: "eyJhbGciOiJIUzI1NiJ9", count: 40)
}
