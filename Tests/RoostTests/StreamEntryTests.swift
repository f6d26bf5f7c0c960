import Settings
import Streams
import Testing

@testable import roost

/// What `streams.on_close` and `streams.bounds` may say.
@Suite struct StreamEntryTests {
    private func settings(_ key: String, _ text: String) throws -> StreamSettings {
        try RoostConfiguration.load(environment: ["ROOST_STREAMS_" + key: text], files: []).streams
    }

    @Test func aStatementIsForAllStreams() throws {
        let rules = try settings("ON_CLOSE", "select keep($1, $2)").closeRules()
        #expect(rules == [CloseRule(pattern: nil, statement: "select keep($1, $2)")])
        #expect(try settings("SYNC", "none").closeRules().isEmpty)
    }

    @Test func entriesHavePatternsEndsAndRoles() throws {
        let rules = try settings(
            "ON_CLOSE",
            """
            [{"stream": "reply/*", "statement": "select a($1)"},
             {"stream": "reply/*", "statement": "select b($1)", "when": "cancelled, aborted", "role": "writer"},
             {"stream": "*", "statement": "select c($1)", "when": ["complete", "cancelled"], "role": null}]
            """
        ).closeRules()
        #expect(
            rules == [
                CloseRule(pattern: "reply/*", statement: "select a($1)"),
                CloseRule(
                    pattern: "reply/*", statement: "select b($1)", reasons: [.cancelled, .aborted], role: "writer"),
                CloseRule(pattern: "*", statement: "select c($1)", reasons: [.complete, .cancelled]),
            ])
    }

    @Test(arguments: [
        (#"[{"statement": "select $1"}]"#, "entry 1 has no stream"),
        (#"[{"stream": "*", "statement": "select $1"}, {"stream": "*", "statement": "select 1 -- $2"}]"#, "entry 2"),
        (#"[{"stream": "*", "statement": "select $1", "whn": "complete"}]"#, "has the key whn"),
        (#"[{"stream": "*", "statement": "select $1", "when": "ended"}]"#, "the word ended in when"),
        (#"[{"stream": "*", "statement": "select $1", "when": []}]"#, "no list of words"),
        (#"[{"stream": "*", "statement": "select $1", "when": "aborted"}]"#, "name the role"),
        (#"["select $1"]"#, "entry 1 has no keys and values"), (#"[{"stream": "$1",}]"#, "is not valid JSON"),
    ]) func whatIsNoEntryIsSaid(_ text: String, _ problem: String) throws {
        let settings = try settings("ON_CLOSE", text)
        let failure = #expect(throws: RunFailure.self) { try settings.closeRules() }
        #expect(failure?.sentence.contains(problem) == true, "\(failure?.sentence ?? "")")
        #expect(failure?.sentence.hasPrefix("streams.on_close") == true)
    }

    @Test func boundsHavePatternsAndBytes() throws {
        let rules = try settings("BOUNDS", #"[{"stream": "voice/*", "bytes": 2048}]"#).boundRules()
        let name = try #require(StreamName("voice/1"))
        #expect(rules.first(for: name) == StreamBound(bytes: 2048))
        let windows = try settings(
            "BOUNDS",
            #"[{"stream": "*", "bytes": 4096, "keep": "newest", "seconds": 60}, {"stream": "*", "bytes": 4096, "keep": "all"}]"#
        ).boundRules()
        #expect(windows.map(\.bound.keepsNewest) == [true, false] && windows.map(\.bound.age) == [60_000, nil])
        for wrong in [
            #"[{"stream": "*", "bytes": 4096, "keep": "oldest"}]"#, #"[{"stream": "*", "bytes": 4096, "seconds": 5}]"#,
            #"[{"stream": "*", "bytes": 4096, "keep": "newest", "seconds": 0}]"#,
            #"[{"stream": "*"}]"#, #"[{"stream": "*", "bytes": 3}]"#, #"[{"bytes": 2048}]"#,
            "[]",
        ] {
            let settings = try settings("BOUNDS", wrong)
            #expect(throws: RunFailure.self) { try settings.boundRules() }
        }
    }
}
