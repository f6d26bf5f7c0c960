import Hub
import Matching
import Wire

/// Writing what the hub sends: each is done once for all who receive it.
enum EncodeOperations {
    private static let topic = JSONString.encode(ClientText.topic)

    static var all: [Operation] {
        [ProtocolVersion.v1, .v2].flatMap { version in
            [
                Operation("encode/broadcast/\(version)") {
                    let frames = ServerFrame(version, topic: topic)
                    let payload = ClientText.broadcastPayload
                    return { times in
                        for _ in 0..<times { blackHole(frames.push("broadcast", payload: [payload[...]])) }
                    }
                },
                Operation("encode/presence_diff/\(version)") {
                    let frames = ServerFrame(version, topic: topic)
                    let diff = makeDiff(of: 1)
                    return { times in
                        for _ in 0..<times { blackHole(frames.push("presence_diff", payload: diff.encoded())) }
                    }
                },
                Operation("encode/postgres_changes/\(version)") {
                    let frames = ServerFrame(version, topic: topic)
                    let pieces = makeChange()
                    return { times in
                        for _ in 0..<times { blackHole(frames.push("postgres_changes", payload: pieces)) }
                    }
                },
                Operation("encode/reply/\(version)") {
                    let frames = ServerFrame(version, topic: topic)
                    let ref = JSON(trusted: Array("\"7\"".utf8)[...])
                    let response = Array("{}".utf8)
                    return { times in
                        for _ in 0..<times {
                            blackHole(frames.reply(joinRef: ref, ref: ref, ok: true, response: response))
                        }
                    }
                },
            ]
        } + [
            Operation("encode/broadcast/binary") {
                let message = makeMessage()
                return { times in
                    for _ in 0..<times { blackHole(ServerFrame.userBroadcast(message, topic: ClientText.topic)) }
                }
            },
            Operation("encode/broadcast/binary_as_text") {
                let message = makeMessage()
                return { times in for _ in 0..<times { blackHole(message.textPayload()) } }
            },
            Operation("encode/presence_diff/100_members") {
                let diff = makeDiff(of: 100)
                return { times in for _ in 0..<times { blackHole(diff.encoded()) } }
            },
            data("insert", ChatTable.insert(conversation: 1), ChangeView()),
            data("update", ChatTable.update(conversation: 1), ChangeView()),
            data("selection", ChatTable.insert(conversation: 1), ChangeView(selection: Selection(["body", "seq"]))),
        ]
    }

    /// What all subscribers of a change are sent, before their frames are made of it.
    private static func data(_ name: String, _ change: RowChange, _ view: ChangeView) -> Operation {
        Operation("encode/change_data/\(name)") {
            var encoder = ChangeEncoder()
            return { times in for _ in 0..<times { blackHole(encoder.encodeData(for: change, view: view)) } }
        }
    }

    private static func makeDiff(of members: Int) -> PresenceDiff {
        var diff = PresenceDiff()
        diff.joins = (0..<members).map { number in
            PresenceMeta(
                member: MemberID(loop: 0, serial: number), key: "user-\(number)", ref: Name("1x2y3z-0-\(number)"),
                payload: Array(ClientText.payload(status: "online").utf8))
        }
        return diff
    }

    private static func makeChange() -> [ArraySlice<UInt8>] {
        var encoder = ChangeEncoder()
        let data = encoder.encodeData(for: ChatTable.insert(conversation: 1))
        return [Array("{\"ids\":[12345678],\"data\":".utf8)[...], data[...], Array("}".utf8)[...]]
    }

    private static func makeMessage() -> UserBroadcast {
        UserBroadcast(event: "m", encoding: .json, payload: ClientText.binaryPayload[...], metadata: nil)
    }
}
