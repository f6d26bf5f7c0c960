import Push
import Testing
import Wire

@Suite struct AlertPayloadTests {
    private func parsed(_ bytes: [UInt8]) throws -> JSON { try JSON(parsing: bytes) }

    private func alert(_ title: AlertText?, _ body: AlertText?) -> AlertPayload {
        AlertPayload(title: title, body: body, badge: 1, threadID: "c", conversationID: "c", messageID: "m")
    }

    @Test func writesEveryField() throws {
        let payload = AlertPayload(
            title: .text("T \"q\""), subtitle: .localized(key: "S", arguments: []),
            body: .localized(key: "B", arguments: ["x", "y\n"]), badge: 0, sound: nil, threadID: "t", category: "reply",
            conversationID: "c", messageID: "m")
        #expect(
            String(decoding: payload.bytes, as: UTF8.self) == #"""
                {"aps":{"alert":{"title":"T \"q\"","subtitle-loc-key":"S","loc-key":"B","loc-args":["x","y\n"]},"badge":0,\#
                "thread-id":"t","category":"reply","mutable-content":1},"conversationId":"c","messageId":"m"}
                """#)
        #expect(payload.size == payload.bytes.count)
    }

    @Test func whatFitsIsLeftAlone() throws {
        let room = 4096 - alert(.text("T"), .text("")).size
        let exact = alert(.text("T"), .text(String(repeating: "x", count: room)))
        #expect(try exact.fitted() == (exact.bytes, false))
        #expect(exact.size == 4096)
        let over = alert(.text("T"), .text(String(repeating: "x", count: room + 1)))
        let (bytes, isCut) = try over.fitted()
        #expect(isCut && bytes.count == 4096)
        #expect(try parsed(bytes)["aps"]?["alert"]?["body"]?.string == String(repeating: "x", count: room - 3) + "…")
    }

    /// Of all characters, at every offset to the limit: as much as fits, and none of them split.
    @Test(arguments: ["👩‍👩‍👧", "🇩🇪", "e\u{301}", "\"", "\u{1}", "中", "\\"])
    func cutsTheBodyBetweenCharacters(_ atom: String) throws {
        for shift in 0..<8 {
            let text = String(repeating: "x", count: shift) + String(repeating: atom, count: 5_000)
            let (bytes, isCut) = try alert(.text("T"), .text(text)).fitted()
            let body = try #require(try parsed(bytes)["aps"]?["alert"]?["body"]?.string)
            #expect(isCut && bytes.count <= 4096)
            #expect(bytes.count > 4096 - JSONString.encode(atom).count)
            #expect(body.hasSuffix("…") && Array(text).starts(with: Array(body.dropLast())))
        }
    }

    @Test func cutsTheTitleAfterTheBodyAndArgumentsByLength() throws {
        let long = String(repeating: "word ", count: 2_000)
        let both = try parsed(try alert(.text(long), .text(long)).fitted().bytes)["aps"]?["alert"]
        #expect(both?["body"]?.string == "…")
        #expect(both?["title"]?.string?.hasSuffix("word…") == true)
        let line = AlertText.localized(key: "K", arguments: ["Ann", long, long + long])
        let arguments = try parsed(try alert(nil, line).fitted().bytes)["aps"]?["alert"]?["loc-args"]?.elements ?? []
        #expect(arguments.map { $0.string?.hasSuffix("…") } == [false, true, true])
        #expect(arguments.first?.string == "Ann")
    }

    @Test func idsAreNeverCut() {
        let payload = AlertPayload(
            title: .text("T"), body: .text("B"), conversationID: String(repeating: "c", count: 5_000))
        let error = #expect(throws: PayloadError.self) { try payload.fitted() }
        guard case .tooLarge(let bytes, 4096) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(bytes > 5_000)
    }
}
