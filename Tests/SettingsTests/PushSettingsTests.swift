import Settings
import Testing

@Suite("Settings of pushes")
struct PushSettingsTests {
    private static let live = [
        "IOS_LIVE_ACTIVITY_TOPIC": "com.example.app.push-type.liveactivity", "IOS_LIVE_ACTIVITY_TEAM_ID": "TEAM123456",
        "IOS_LIVE_ACTIVITY_KEY_ID": "KEY1234567", "IOS_LIVE_ACTIVITY_PRIVATE_KEY": Sample.key,
        "IOS_LIVE_ACTIVITY_ENV": "sandbox",
    ]

    @Test("are taken from an app's own variables as they are, and ours win over them")
    func aliases() throws {
        let plain = try RoostConfiguration.load(environment: Self.live, files: [])
        #expect(plain.push.topic == "com.example.app", "the suffix is that of a request, not the app's")
        #expect(plain.push.key?.team == "TEAM123456")
        #expect(plain.push.key?.id == "KEY1234567")
        #expect(plain.push.key?.pem == Sample.key)
        #expect(plain.push.environment == "sandbox")
        let origin = plain.values.first { $0.setting.key == "apns.topic" }?.origin
        #expect(origin == .variable("IOS_LIVE_ACTIVITY_TOPIC"))
        let environment = Self.live.merging(["ROOST_APNS_TOPIC": "com.example.other"]) { $1 }
        let ours = try RoostConfiguration.load(environment: environment, files: [])
        #expect(ours.push.topic == "com.example.other")
        #expect(!plain.printed().contains("MIGT"))
    }

    @Test("have templates of single tables as keys and values, or as JSON in a text")
    func templates() throws {
        let json =
            #"{"public.reminders":{"title":"Due: \"{text}\"","relevance_score":0.5,"sound":"","payload":{"id":"7","n":7}}}"#
        let file = """
            alerts:
              templates:
                public.reminders:
                  title: 'Due: "{text}"'
                  relevance_score: 0.5
                  sound: ''
                  payload: {id: '7', n: 7}
            """
        try withFile(file) { path in
            let written = try RoostConfiguration.load(file: path, environment: [:])
            #expect(written.push.templates == json)
            let origin = written.values.first { $0.setting.key == "alerts.templates" }?.origin
            #expect(origin == .file(path, line: 2))
            // What is printed is read as the same.
            try withFile(written.printed()) { printed in
                let again = try RoostConfiguration.load(file: printed, environment: [:])
                #expect(again.push.templates == json)
            }
        }
        let variable = try RoostConfiguration.load(environment: ["ROOST_ALERTS_TEMPLATES": json], files: [])
        #expect(variable.push.templates == json)
        let none = try RoostConfiguration.load(environment: [:], files: [])
        #expect(none.push.templates == nil)
    }

    @Test("are an error where one of the four is missing", arguments: Sample.apns.keys.sorted())
    func allOrNothing(missing: String) throws {
        var environment = Sample.apns
        environment[missing] = nil
        let error = #expect(throws: ConfigurationError.self) {
            try RoostConfiguration.load(environment: environment, files: [])
        }
        #expect(error?.message.contains("pushes take all four") == true)
        #expect(error?.message.contains("MIGT") == false)
    }

    @Test(
        "are refused where they cannot be right",
        arguments: [
            ["IOS_LIVE_ACTIVITY_ENV": "development"], ["ROOST_APNS_TEAM_ID": "TEAM"],
            ["ROOST_APNS_KEY_ID": "KEY-123456"],
            ["ROOST_APNS_PRIVATE_KEY": "AuthKey.p8"], ["ROOST_ALERTS_TABLES": "messages"],
            ["ROOST_ALERTS_AUDIENCE": "select 1"], ["ROOST_ALERTS_TOKENS": "select 1"],
            ["ROOST_ALERTS_TEMPLATES": "public.reminders"], ["ROOST_LIVE_ACTIVITY_CONTENT_STATE": "[1]"],
            ["ROOST_LIVE_ACTIVITY_CEILING_MILLISECONDS": "1000"],
        ])
    func refused(one: [String: String]) throws {
        let environment = Sample.apns.merging(one) { $1 }
        let error = #expect(throws: ConfigurationError.self) {
            try RoostConfiguration.load(environment: environment, files: [])
        }
        let name = try #require(one.keys.first)
        let key = name.replacing("ROOST_LIVE_ACTIVITY_", with: "live_activity.").lowercased()
        #expect(error?.message.contains(name) == true || error?.message.contains(key) == true)
    }
}
