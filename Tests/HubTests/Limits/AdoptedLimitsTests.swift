import Hub
import Testing
import Wire

/// Other limits and rules while there are sockets.
@Suite struct AdoptedLimitsTests {
    private func isOK(_ said: [String]) -> Bool { said.contains { $0.contains(#""phx_reply",{"status":"ok""#) } }

    @Test func theNextJoinIsHeldAgainstTheNewLimit() throws {
        var limits = HubLimits()
        limits.channelsPerConnection = 1
        let stage = Stage(limits: limits)
        stage.connect(1)
        #expect(isOK(try stage.join("realtime:a", 1)))
        #expect(!isOK(try stage.join("realtime:b", 1, ref: "2")))
        limits.channelsPerConnection = 2
        stage.hub.applySettings(limits, .plain, TypingRules())
        #expect(isOK(try stage.join("realtime:b", 1, ref: "3")))
    }

    @Test func whoIsInStaysIn() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        for (number, topic) in ["realtime:a", "realtime:b"].enumerated() {
            try stage.join(topic, 1, ref: "\(number)")
            try stage.join(topic, 2, ref: "\(number)")
        }
        var limits = HubLimits()
        limits.channelsPerConnection = 1
        limits.privateOnly = true
        stage.hub.applySettings(limits, .plain, TypingRules())
        let said = try stage.say(#"["1","9","realtime:b","broadcast",{"event":"e","payload":{}}]"#, from: 1)
        #expect(said.contains { $0.hasPrefix("2 ⇐") }, "\(said)")
        #expect(!isOK(try stage.join("realtime:c", 1, ref: "10")))
    }

    @Test func aPayloadIsHeldAgainstTheNewLimit() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"broadcast":{"ack":true}}"#)
        let frame =
            #"["1","2","realtime:a","broadcast",{"event":"e","payload":{"text":"\#(String(repeating: "x", count: 300))"}}]"#
        #expect(isOK(try stage.say(frame, from: 1)))
        var limits = HubLimits()
        limits.payloadBytes = 256
        stage.hub.applySettings(limits, .plain, TypingRules())
        #expect(try stage.say(frame, from: 1).contains { $0.contains("it may have 256 bytes") })
    }

    @Test func typingThatIsTurnedOffIsABroadcastLikeAnyOther() throws {
        let stage = Stage()
        for slot in Slot(1)...2 {
            stage.connect(slot, subject: "user-\(slot)")
            try stage.join("realtime:a", slot)
        }
        let frame =
            #"["1","2","realtime:a","broadcast",{"type":"broadcast","event":"typing","payload":{"user_id":"user-1"}}]"#
        var rules = TypingRules()
        rules.isOn = false
        stage.hub.applySettings(HubLimits(), .plain, rules)
        for _ in 1...3 {
            let said = try stage.say(frame, from: 1)
            #expect(said.contains { $0.hasPrefix("2 ⇐") && $0.contains("typing") }, "each is passed on: \(said)")
        }
    }
}
