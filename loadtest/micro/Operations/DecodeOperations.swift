import HTTP
import Wire

/// Reading what clients send.
enum DecodeOperations {
    static var all: [Operation] {
        [ProtocolVersion.v1, .v2].flatMap { version in
            [
                text("join", join(version), version),
                text("heartbeat", ClientText.heartbeat(version), version),
                text("broadcast", ClientText.broadcast(version), version),
                text("track", ClientText.track(version), version),
                text("access_token", ClientText.accessToken(version), version),
            ]
        } + [
            Operation("decode/broadcast/binary") {
                let frame = ClientText.binary
                return { times in
                    for _ in 0..<times { blackHole(try ClientFrame(binary: frame[...], version: .v2)) }
                }
            },
            Operation("decode/http/upgrade_head") { head(HTTPText.upgrade) },
            Operation("decode/http/post_head") { head(HTTPText.post) },
            Operation("decode/http/chunked_body") {
                let body = HTTPText.chunkedBody
                return { times in
                    for _ in 0..<times {
                        var decoder = HTTPBodyDecoder(.chunked)
                        var content: [UInt8] = []
                        blackHole(body.withUnsafeBytes { decoder.decode($0, into: &content) })
                        blackHole(content)
                    }
                }
            },
        ]
    }

    private static func head(_ text: [UInt8]) -> Operation.Run {
        { times in
            for _ in 0..<times {
                var parser = HTTPHeadParser()
                blackHole(text.withUnsafeBytes { parser.parse($0) })
            }
        }
    }

    private static func join(_ version: ProtocolVersion) -> [UInt8] {
        ClientText.join(changes: "[\(ChatTable.entry(conversation: 1))]", token: ClientText.token, version)
    }

    private static func text(_ name: String, _ frame: [UInt8], _ version: ProtocolVersion) -> Operation {
        Operation("decode/\(name)/\(version)") {
            { times in for _ in 0..<times { blackHole(try ClientFrame(text: frame[...], version: version)) } }
        }
    }
}
