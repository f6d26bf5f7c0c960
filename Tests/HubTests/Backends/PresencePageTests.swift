import Hub
import Testing

/// Who is present, page by page.
@Suite struct PresencePageTests {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)

    private func stage(_ keys: [String]) throws -> Stage {
        let stage = Stage()
        for (number, key) in keys.enumerated() {
            let slot = Slot(number)
            stage.connect(slot)
            try stage.join("realtime:a", slot, #"{"presence":{"enabled":true,"key":"\#(key)"}}"#)
            try stage.say(
                #"["1","2","realtime:a","presence",{"type":"presence","event":"track","payload":{"n":\#(number)}}]"#,
                from: slot)
        }
        return stage
    }

    @Test(arguments: [1, 2, 3, 500]) func pagesTogetherAreEverybodyByKey(_ limit: Int) throws {
        let keys = (0..<30).map { "k\($0 % 11)" }
        let stage = try stage(keys)
        var (metas, after): ([String], PresencePage.Place?) = ([], nil)
        for _ in 0..<100 {
            let page = stage.hub.presencePage(of: Self.key, after: after, limit: limit)
            #expect(page.count == 30 && page.listed == 30)
            #expect(page.members.reduce(0) { $0 + $1.metas.count } <= limit)
            metas += page.members.flatMap { member in member.metas.map { _ in member.key } }
            after = page.end
            if after == nil { break }
        }
        #expect(metas == keys.sorted())
    }

    @Test func metasAreThoseThatClientsAreTold() throws {
        let page = try stage(["ann"]).hub.presencePage(of: Self.key, after: nil, limit: 9)
        let meta = String(decoding: try #require(page.members.first?.metas.first), as: UTF8.self)
        #expect(meta.hasPrefix(#"{"n":0,"phx_ref":""#))
        #expect(page.end == nil)
    }

    @Test func whoLeftIsNotThere() throws {
        let stage = try stage(["ann", "bob"])
        try stage.say(#"["1","3","realtime:a","phx_leave",{}]"#, from: 0)
        #expect(stage.hub.presencePage(of: Self.key, after: nil, limit: 9).members.map(\.key) == ["bob"])
    }

    @Test func aChannelThatNobodyIsInHasNobody() {
        let page = Stage().hub.presencePage(of: Self.key, after: nil, limit: 9)
        #expect(page.members.isEmpty && page.count == 0 && page.end == nil)
    }
}
