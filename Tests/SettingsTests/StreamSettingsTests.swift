import Settings
import Testing

@Suite("Settings of streams")
struct StreamSettingsTests {
    @Test("have a statement, or entries as a list of YAML or as JSON in a text")
    func closes() throws {
        let json =
            #"[{"stream":"reply/*","statement":"select keep($1)"},{"stream":"*","statement":"select stop($1)","when":["cancelled","aborted"],"role":"writer"}]"#
        let file = """
            streams:
              on_close:
                - {stream: 'reply/*', statement: select keep($1)}
                - stream: '*'
                  statement: >-
                    select
                    stop($1)
                  when: [cancelled, aborted]
                  role: writer
              bounds:
                - {stream: voice/*, bytes: 8388608}
            """
        try withFile(file) { path in
            let written = try RoostConfiguration.load(file: path, environment: [:])
            #expect(written.streams.onClose == json)
            #expect(written.streams.bounds == #"[{"stream":"voice/*","bytes":8388608}]"#)
            try withFile(written.printed()) { printed in
                let again = try RoostConfiguration.load(file: printed, environment: [:])
                #expect(again.streams.onClose == json)
            }
        }
        let variable = try RoostConfiguration.load(environment: ["ROOST_STREAMS_ON_CLOSE": json], files: [])
        #expect(variable.streams.onClose == json)
        let statement = try RoostConfiguration.load(environment: ["ROOST_STREAMS_ON_CLOSE": "select $1"], files: [])
        #expect(statement.streams.onClose == "select $1")
    }

    @Test("are refused if they are neither", arguments: ["select 1", "[{statement: select $1}", "[]"])
    func neither(text: String) throws {
        let error = #expect(throws: ConfigurationError.self) {
            try RoostConfiguration.load(environment: ["ROOST_STREAMS_ON_CLOSE": text], files: [])
        }
        #expect(error?.message.contains("or a list of entries") == true)
    }
}
