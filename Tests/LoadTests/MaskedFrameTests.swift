import Testing
import Wire

@testable import roost_load

@Suite struct MaskedFrameTests {
    /// The payload of a client's frame, unmasked.
    private func payload(_ frame: [UInt8]) -> [UInt8] {
        let length = Int(frame[1] & 127)
        let head = length == 126 ? 4 : length == 127 ? 10 : 2
        let key = Array(frame[head..<(head + 4)])
        return frame[(head + 4)...].enumerated().map { $1 ^ key[$0 & 3] }
    }

    private func text(_ frame: [UInt8]) -> String { String(decoding: payload(frame), as: UTF8.self) }

    @Test(arguments: [0, 1, 125, 126, 65_535, 65_536])
    func lengths(count: Int) {
        let body = [UInt8](repeating: 7, count: count)
        let frame = OutgoingFrame.make(.binary, body)
        #expect(frame[0] == 0x82)
        #expect(frame[1] & 0x80 == 0x80)
        #expect(payload(frame) == body)
    }

    @Test func incomingFramesMayBeInPieces() {
        let bytes: [UInt8] = [0x81, 2, 1, 2, 0x82, 126, 0, 200] + [UInt8](repeating: 9, count: 200)
        bytes.withUnsafeBytes { raw in
            #expect(IncomingFrame(in: raw, at: 0)?.payload == 2..<4)
            #expect(IncomingFrame(in: raw, at: 4)?.payload == 8..<208)
            #expect(IncomingFrame(in: UnsafeRawBufferPointer(rebasing: raw[..<207]), at: 4) == nil)
            #expect(IncomingFrame(in: UnsafeRawBufferPointer(rebasing: raw[..<3]), at: 0) == nil)
            #expect(IncomingFrame(in: raw, at: 208) == nil)
        }
    }

    @Test func joinsOfBothVersions() throws {
        var dialect = Dialect()
        let two = try JSON(parsing: payload(dialect.join("realtime:a\"b", ref: "3", config: #""private":true"#)))
        #expect(two.elements.map(\.string) == ["3", "3", "realtime:a\"b", "phx_join", nil])
        #expect(two.elements[4]["config"]?["private"]?.bool == true)
        dialect.version = .objects
        let one = try JSON(parsing: payload(dialect.join("realtime:a", ref: "3", bearer: #","access_token":"t""#)))
        #expect(one["join_ref"]?.string == "3")
        #expect(one["payload"]?["access_token"]?.string == "t")
        dialect.isPlain = true
        #expect(try JSON(parsing: payload(dialect.join("room:1", ref: "1")))["payload"]?.description == "{}")
    }

    @Test func broadcasts() throws {
        var dialect = Dialect()
        let stamp = Array("STAMP".utf8)
        let plain = dialect.broadcast("realtime:a", joinRef: "1", event: "m", members: #""x":1,"#)
        let two = try JSON(parsing: payload(plain.frame(stamp, size: 8)))
        #expect(two.elements[3].string == "broadcast")
        #expect(two.elements[4]["payload"]?["t"]?.string == "STAMPxxx")
        #expect(two.elements[4]["payload"]?["x"]?.int == 1)
        dialect.isBinary = true
        let binary = payload(dialect.broadcast("realtime:a", joinRef: "1", event: "m").frame(stamp))
        #expect(binary.prefix(7) == [3, 1, 1, 10, 1, 0, 1])
        #expect(String(decoding: binary.dropFirst(7), as: UTF8.self) == #"12realtime:am{"t":"STAMP"}"#)
        let phoenix = Dialect(version: .objects, isPlain: true)
        let event = try JSON(parsing: payload(phoenix.broadcast("room:1", joinRef: "1", event: "new").frame(stamp)))
        #expect(event["event"]?.string == "new")
        #expect(event["payload"]?["t"]?.string == "STAMP")
    }

    @Test func presence() {
        #expect(
            text(Dialect().presence("t", joinRef: "1", track: #"{"a":1}"#)).hasSuffix(
                #"{"type":"presence","event":"track","payload":{"a":1}}]"#))
        #expect(text(Dialect().presence("t", joinRef: "1", track: nil)).hasSuffix(#""event":"untrack"}]"#))
    }

    private func answer(_ text: String, awaitsSubscription: Bool = true) -> String {
        Array(text.utf8).withUnsafeBytes {
            switch JoinAnswer($0, awaitsSubscription: awaitsSubscription) {
            case .expected: "expected"
            case .refused(let why): why
            case .other: "other"
            }
        }
    }

    @Test func answersToJoins() {
        #expect(answer(#"["1","1","t","phx_reply",{"status":"ok","response":{}}]"#) == "expected")
        #expect(
            answer(#"{"ref":"1","event":"phx_reply","topic":"t","payload":{"status":"ok","response":{}}}"#)
                == "expected")
        #expect(answer(#"["1","1","t","phx_reply",{"status":"error","response":{"reason":"no"}}]"#).contains("no"))
        let system = #"["1",null,"t","system",{"extension":"postgres_changes","status":"ok","message":""}]"#
        #expect(answer(system) == "expected")
        #expect(answer(system, awaitsSubscription: false) == "other")
        #expect(
            answer(#"["1",null,"t","system",{"extension":"system","status":"error","message":"bad"}]"#).hasSuffix("bad")
        )
        #expect(answer(#"[null,"h","phoenix","phx_reply",{"status":"ok","response":{}}]"#) == "other")
        #expect(answer(#"["1","1","t","phx_close",{}]"#).contains("closed"))
        #expect(answer("phx_reply, but no JSON") == "other")
        #expect(answer(#"["1","1","t","presence_state",{}]"#) == "other")
    }

    @Test func upgrades() {
        func outcome(_ text: String) -> String {
            Array(text.utf8).withUnsafeBytes {
                switch UpgradeAnswer($0) {
                case .incomplete: "incomplete"
                case .accepted(let end): "accepted \(end)"
                case .refused(let why): why
                }
            }
        }
        #expect(outcome("HTTP/1.1 101 Switching\r\nA: b\r\n") == "incomplete")
        #expect(outcome("HTTP/1.1 101 Switching\r\nA: b\r\n\r\n").hasPrefix("accepted"))
        #expect(outcome("HTTP/1.1 401 Unauthorized\r\n\r\n{}") == "refused with HTTP 401 Unauthorized: {}")
    }

    @Test func ends() {
        func sentence(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { CloseFrame.sentence($0) } }
        #expect(sentence([0x03, 0xF4] + "restart".utf8) == "closed by the server with 1012 (restart)")
        #expect(sentence([0x03, 0xE8]) == "closed by the server with 1000")
        #expect(sentence([]) == "closed by the server without a code")
    }
}
