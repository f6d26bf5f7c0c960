import Hub
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
            try stage.watch { $0.show(summary) } == [
                #"3 ← {"topic":"realtime:live-activity:7","event":"broadcast","payload":\#(payload),"ref":null}"#,
                #"1 ← [null,null,"realtime:live-activity:7","broadcast",\#(payload)]"#,
            ])
    }

    @Test func whoJoinsAnActivitysChannelIsToBeShownIt() throws {
        let joins = SummaryJoins()
        let stage = Stage(
            hub: Hub(loop: 0, verifier: TokenBook(), random: SeededGenerator(seed: 1), summaryJoins: joins))
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

    @Test func nobodyIsToldWhereNobodyIs() throws {
        let stage = Stage()
        let summary = ActivitySummary(activity: "7", user: "ada", timestamp: 1, event: .end, state: Array("{}".utf8))
        #expect(try stage.watch { $0.show(summary) }.isEmpty)
    }
}
