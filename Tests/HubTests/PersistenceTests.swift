import Hub
import Testing
import Wire

/// Broadcasts that ask to be kept as rows (supabase/realtime PR 2022): whose, when they are acknowledged, and with what.
@Suite struct PersistenceTests {
    /// Slots 1 and 2 are in the private `realtime:a`, or in the public one.
    private func room(_ config: String = #"{"broadcast":{"ack":true}}"#, isPrivate: Bool = true) throws -> Stage {
        let stage = Stage()
        for slot in Slot(1)...2 {
            stage.connect(slot, subject: "ann")
            if isPrivate {
                try stage.joinPrivate("realtime:a", slot, config)
            } else {
                try stage.join("realtime:a", slot, config)
            }
        }
        return stage
    }

    private func frame(_ metadata: String, payload: String = #"{"n":1}"#, isJSON: Bool = true, ref: String = "9")
        -> [UInt8]
    {
        [3, 1, UInt8(ref.utf8.count), 10, 1, UInt8(metadata.utf8.count), isJSON ? 1 : 0]
            + Array("1\(ref)realtime:ae\(metadata)\(payload)".utf8)
    }

    private static let heard = [#"2 ⇐ #4 realtime:a e json {"n":1}"#, "relay broadcast realtime:a private"]

    private func reply(_ response: String, _ status: String = "ok", ref: String = "9") -> String {
        #"1 ← ["1","\#(ref)","realtime:a","phx_reply",{"status":"\#(status)","response":\#(response)}]"#
    }

    /// What the last actions want stored.
    private func stored(_ stage: Stage) -> [(id: Int?, message: PersistedMessage)] {
        stage.actions.compactMap { if case .store(let id, let message) = $0 { (id, message) } else { nil } }
    }

    /// Both rights are asked, and given.
    private func send(_ stage: Stage, _ frame: [UInt8], persists: ChannelExtensions = .persistence) throws -> [String] {
        #expect(try stage.say(frame, from: 1) == ["authorize anon write a"])
        #expect(try stage.decide(.decided(.broadcast)) == ["authorize anon persist a"])
        return try stage.decide(.decided(persists))
    }

    @Test func theAcknowledgementWaitsForTheRowAndHasItsId() throws {
        let stage = try room()
        #expect(try send(stage, frame(#"{"persist":true}"#)) == Self.heard + ["store a e ack"])
        let (id, message) = try #require(stored(stage).first)
        #expect(message.ttl == nil && message.user == "ann")
        #expect(try stage.watch { $0.storeAnswered(try #require(id), as: "7-7") } == [reply(#"{"id":"7-7"}"#)])
        #expect(try stage.watch { $0.storeAnswered(try #require(id), as: "7-7") }.isEmpty, "once")
        #expect(try stage.say(frame("{\"persist\":{}}"), from: 1) == Self.heard + ["store a e ack"], "rights hold")
    }

    /// It was delivered, so it is no error that it is no row.
    @Test func whatCouldNotBeStoredIsAcknowledgedWithoutOne() throws {
        let stage = try room()
        _ = try send(stage, frame(#"{"persist":true}"#))
        let id = try #require(stored(stage).first?.id)
        #expect(try stage.watch { $0.storeAnswered(id, as: nil) } == [reply("{}")])
    }

    @Test func whoMayNotKeepItMaySendIt() throws {
        let stage = try room()
        #expect(try send(stage, frame(#"{"persist":true}"#), persists: []) == Self.heard + [reply("{}")])
        #expect(try stage.say(frame(#"{"persist":true}"#), from: 1) == Self.heard + [reply("{}")])
    }

    @Test func whoMayNotSendItIsRefused() throws {
        let stage = try room()
        try stage.say(frame(#"{"persist":true}"#), from: 1)
        let told = try stage.decide(.decided([]))
        #expect(told.count == 1 && told[0].contains(#""error":"unauthorized""#), "\(told)")
    }

    @Test func withoutAckNobodyWaits() throws {
        let stage = try room("{}")
        #expect(try send(stage, frame(#"{"persist":true}"#)) == Self.heard + ["store a e"])
    }

    @Test(arguments: [
        (#"{"persist":{"ttl":60}}"#, 60), (#"{"persist":{"ttl":"60"}}"#, 60), (#"{"persist":{"ttl":259200}}"#, 259_200),
        (#"{"persist":{"ttl":null}}"#, nil), (#"{"persist":{"other":1}}"#, nil),
    ])
    func itMayExpire(_ metadata: String, _ ttl: Int?) throws {
        let stage = try room()
        _ = try send(stage, frame(metadata))
        #expect(stored(stage).first?.message.ttl == ttl)
    }

    @Test(arguments: [
        #"{"persist":{"ttl":0}}"#, #"{"persist":{"ttl":259201}}"#, #"{"persist":{"ttl":1.5}}"#,
        #"{"persist":{"ttl":"x"}}"#,
        #"{"persist":"true"}"#, #"{"persist":7}"#, #"{"persist":[]}"#,
    ])
    func aTimeThatIsNoneIsRefused(_ metadata: String) throws {
        let stage = try room()
        let told = try stage.say(frame(metadata), from: 1)
        #expect(told.count == 1 && told[0].contains(#""error":"invalid_persist_ttl""#), "\(told)")
        #expect(try room("{}").say(frame(metadata), from: 1).isEmpty, "nobody waits for an answer")
    }

    @Test(arguments: ["", "{}", #"{"persist":false}"#, #"{"persist":null}"#, "7", "{oops"])
    func whoDoesNotAskForItIsNotKept(_ metadata: String) throws {
        let stage = try room()
        try stage.say(frame(metadata), from: 1)
        #expect(try stage.decide(.decided(.broadcast)) == Self.heard + [reply("{}")])
    }

    @Test func inAPublicChannelNothingIsKept() throws {
        let stage = try room(isPrivate: false)
        let told = try stage.say(frame(#"{"persist":{"ttl":0}}"#), from: 1)
        #expect(told == ["2 ⇐ #4 realtime:a e json {\"n\":1}", "relay broadcast realtime:a", reply("{}")])
    }

    @Test func bytesAreKeptAsBytes() throws {
        let stage = try room()
        _ = try send(stage, frame(#"{"persist":true}"#, payload: "x", isJSON: false))
        guard case .binary([0x78])? = stored(stage).first?.message.body else { throw Missing() }
    }

    @Test func whatIsCalledJSONAndIsNotCannotBeARow() throws {
        let stage = try room()
        let told = try send(stage, frame(#"{"persist":true}"#, payload: "{oops"))
        #expect(told.last == reply("{}") && stored(stage).isEmpty)
    }

    /// Later messages wait for the rights of earlier ones, so that all come in order.
    @Test func theOrderStays() throws {
        let stage = try room()
        try stage.say(frame(#"{"persist":true}"#, ref: "7"), from: 1)
        #expect(try stage.decide(.decided(.broadcast)) == ["authorize anon persist a"])
        let id = try #require(stage.asked.first)
        #expect(try stage.say(frame("", ref: "8"), from: 1).isEmpty)
        let told = try stage.watch { $0.receiveAuthorization(id, is: .decided(.persistence)) }
        #expect(told == Self.heard + ["store a e ack"] + Self.heard + [reply("{}", ref: "8")])
    }

    @Test func withoutADatabaseItIsRefused() throws {
        let stage = try room()
        try stage.say(frame(#"{"persist":true}"#), from: 1)
        try stage.decide(.decided(.broadcast))
        let told = try stage.decide(.unavailable)
        #expect(told.count == 1 && told[0].contains(#""error":"unable_to_connect_to_project""#), "\(told)")
        #expect(stage.hub.heldBytes == 0)
        #expect(try stage.say(frame(#"{"persist":true}"#), from: 1) == ["authorize anon persist a"], "asked again")
    }

    @Test func whoIsGoneIsNotAnswered() throws {
        let stage = try room()
        _ = try send(stage, frame(#"{"persist":true}"#))
        let id = try #require(stored(stage).first?.id)
        try stage.disconnect(1)
        #expect(try stage.watch { $0.storeAnswered(id, as: "7-7") }.isEmpty)
    }

    private struct Missing: Error {}
}
