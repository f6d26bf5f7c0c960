import Hub
import TestSupport
import Testing
import Wire

@Suite struct SummaryTests {
    @Test func onlyTheActivitysOwnUserIsTold() throws {
        let stage = Stage()
        stage.connect(1, subject: "ada")
        stage.connect(2, subject: "bob")
        stage.connect(3, .v1, subject: "ada")
        stage.connect(4)
        for slot in [1, 2, 4] as [Slot] { try stage.join("realtime:live-activity:7", slot) }
        try stage.joinV1("realtime:live-activity:7", 3)
        let summary = ActivitySummary(
            activity: "7", user: "ada", timestamp: 1000, event: .update, state: Array(#"{"unread":1}"#.utf8))
        let payload =
            #"{"event":"summary","payload":{"activityId":"7","timestamp":1000,"event":"update","contentState":{"unread":1}},"type":"broadcast"}"#
        #expect(
            try stage.watch { $0.showSummary(summary) } == [
                #"3 ← {"topic":"realtime:live-activity:7","event":"broadcast","payload":\#(payload),"ref":null}"#,
                #"1 ← [null,null,"realtime:live-activity:7","broadcast",\#(payload)]"#,
            ])
    }

    @Test func whoJoinsAnActivitysChannelIsToBeShownIt() throws {
        let joins = SummaryJoins()
        let stage = Stage(
            hub: Hub(loop: 0, verifier: TestVerifier(), random: SeededGenerator(seed: 1), summaryJoins: joins))
        stage.connect(1, subject: "ada")
        stage.connect(2)
        try stage.join("realtime:live-activity:7", 1)
        try stage.join("realtime:live-activity:7", 1)
        try stage.join("realtime:live-activity:7", 2)
        try stage.join("realtime:live", 1)
        try stage.join("realtime:live-activity:" + String(repeating: "7", count: 201), 1)
        #expect(joins.takeAll() == [SummaryJoins.Join(activity: "7", user: "ada")])
        #expect(joins.takeAll().isEmpty)
    }

    /// Whoever knows an activity's id could tell its user anything.
    @Test(arguments: [
        #"{"type":"broadcast","event":"summary","payload":{"timestamp":4000000000}}"#,
        #"{"event":"end","payload":{}}"#, #"{"event":"x","event":"\u0073ummary","payload":{}}"#,
        #"{"event":"summary","event":"x","payload":{}}"#,
    ]) func nobodyElseSaysWhatTheHubSays(_ message: String) throws {
        let stage = Stage()
        for slot in Slot(1)...2 {
            stage.connect(slot, subject: "ada")
            for topic in ["live-activity:7", "live"] {
                try stage.join("realtime:\(topic)", slot, #"{"broadcast":{"ack":true}}"#)
            }
        }
        let said = try stage.say(#"["1","5","realtime:live-activity:7","broadcast",\#(message)]"#, from: 1)
        #expect(said.count == 1)
        #expect(said.first?.contains("come from the hub alone") == true)
        #expect(try stage.say(#"["1","5","realtime:live","broadcast",\#(message)]"#, from: 1).count == 3)
        let other = #"{"event":"summary2","payload":{"event":"end"}}"#
        #expect(try stage.say(#"["1","5","realtime:live-activity:7","broadcast",\#(other)]"#, from: 1).count == 3)
    }

    @Test func norDoesABinaryMessage() throws {
        let stage = Stage()
        stage.connect(1, subject: "ada")
        try stage.join("realtime:live-activity:7", 1, #"{"broadcast":{"ack":true}}"#)
        for encoding in [UInt8(0), 1] {
            let head: [UInt8] = [3, 1, 1, 24, 7, 0, encoding] + Array("15realtime:live-activity:7summary".utf8)
            let said = try stage.say(head + Array("{}".utf8), from: 1)
            #expect(said.count == 1)
            #expect(said.first?.contains("come from the hub alone") == true)
        }
    }

    @Test func nobodyIsToldWhereNobodyIs() throws {
        let stage = Stage()
        let summary = ActivitySummary(activity: "7", user: "ada", timestamp: 1, event: .end, state: Array("{}".utf8))
        #expect(try stage.watch { $0.showSummary(summary) }.isEmpty)
    }
}
