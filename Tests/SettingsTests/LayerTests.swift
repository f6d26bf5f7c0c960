import Settings
import Testing

@Suite("Layers")
struct LayerTests {
    @Test("with nothing set there are the defaults, and no file is needed")
    func defaults() throws {
        let configuration = try RoostConfiguration.load(environment: [:], files: ["/nowhere.yaml"], cores: 3)
        #expect(configuration.file == nil)
        #expect(configuration.httpPort == 4000)
        #expect(configuration.opsPort == 4001)
        #expect(configuration.loops == 3)
        #expect(configuration.databaseURL == nil)
        #expect(configuration.values.allSatisfy { $0.origin == .standard })
    }

    @Test("what names files and programs is no setting, and no fault")
    func variablesThatAreNoSettings() throws {
        let configuration = try RoostConfiguration.load(
            environment: ["ROOST_POSTGRES_BIN": "/opt/postgres/bin"], files: ["/nowhere.yaml"])
        #expect(configuration.values.allSatisfy { $0.origin == .standard })
    }

    @Test("a flag wins over a variable, a variable over the file, the file over the default")
    func order() throws {
        try withFile("http:\n  port: 1\n  host: a\nops:\n  port: 2\n") { path in
            let configuration = try RoostConfiguration.load(
                file: path, flags: ["http.port": "5"], environment: ["ROOST_HTTP_PORT": "4", "ROOST_HTTP_HOST": "b"])
            #expect(configuration.httpPort == 5)
            #expect(configuration.httpHost == "b")
            #expect(configuration.opsPort == 2)
            #expect(configuration.opsHost == "127.0.0.1")
            #expect(origin("http.port", in: configuration) == .flag("--http-port"))
            #expect(origin("http.host", in: configuration) == .variable("ROOST_HTTP_HOST"))
            #expect(origin("ops.port", in: configuration) == .file(path, line: 5))
            #expect(origin("ops.host", in: configuration) == .standard)
        }
    }

    @Test("every setting can be set by its variable", arguments: Setting.all.map(\.key))
    func everyVariable(key: String) throws {
        let setting = try #require(Setting.all.first { $0.key == key })
        let text =
            switch setting.kind {
            case .integer(let range): key == "timeouts.idle" ? "61" : "\(range.lowerBound)"
            case .toggle: "yes"
            case .choice(let words): words[0]
            case .host: "::1"
            case .name: "node-2"
            case .connection: "host=/run/postgresql dbname=chat"
            case .secret(let bytes), .secrets(let bytes): String(repeating: "s", count: bytes)
            case .words(let allowed): allowed?.first ?? "one, two"
            case .path: "keys.json"
            case .mode: "0600"
            case .origins: "https://*.example.com, http://[::1]:3000"
            case .networks: "10.0.0.0/8, ::1, unix"
            case .windows: "room:*=1/2/3"
            case .columns: "app.notes.author"
            case .statement: "select app.note($1, $2, $3)"
            case .webURL: "https://keys.example.com"
            case .redisURL: "redis://127.0.0.1:6379"
            case .query: "select * from app.audience($1)"
            case .closes: #"[{"stream": "*", "statement": "select $1"}]"#
            case .entries: "[]"
            case .bundle: "com.example.app"
            case .code(let length): String(repeating: "K", count: length)
            case .pem: Sample.key
            case .tables: "app.notes"
            case .template: "{sender_name}"
            case .json: "{}"
            case .mappings: "messages -> room:{conversation_id} / new_message"
            case .timedColumns: "public.reminders.reminder_time unless done_at is not null"
            }
        var environment = Sample.apns.merging([setting.environmentName: text]) { $1 }
        if key == "live_activity.ceiling_milliseconds" {
            environment["ROOST_LIVE_ACTIVITY_DEBOUNCE_MILLISECONDS"] = "0"
        }
        // Neither is of use alone.
        if key.hasPrefix("tls.") { environment.merge(["ROOST_TLS_CERTIFICATE": "a", "ROOST_TLS_KEY": "b"]) { $1 } }
        // The one limit that has to fit into another.
        if key == "limits.message_bytes" { environment["ROOST_LIMITS_PAYLOAD_BYTES"] = "1024" }
        let configuration = try RoostConfiguration.load(environment: environment, files: [])
        #expect(origin(key, in: configuration) == .variable(setting.environmentName))
    }

    @Test("ROOST_CONFIG names the file, --config wins over it, and a standard place is used when there is one")
    func whichFile() throws {
        try withFile("loops: 7\n") { seven in
            try withFile("loops: 8\n") { eight in
                let environment = ["ROOST_CONFIG": seven]
                let named = try RoostConfiguration.load(environment: environment)
                #expect(named.loops == 7)
                let flagged = try RoostConfiguration.load(file: eight, environment: environment)
                #expect(flagged.loops == 8)
                let found = try RoostConfiguration.load(environment: [:], files: ["/nowhere", eight, seven])
                #expect(found.loops == 8)
            }
        }
    }

    @Test("an empty value means not set", arguments: ["", "~", "null", "\"\""])
    func blanks(text: String) throws {
        let configuration = try withFile("http:\n  port: \(text)\nops:\n#  port: 1\n") { path in
            try RoostConfiguration.load(file: path, environment: ["ROOST_HTTP_HOST": ""])
        }
        #expect(configuration.httpPort == 4000)
        #expect(configuration.httpHost == "127.0.0.1")
    }

    @Test("a file of comments sets nothing", arguments: ["", "# nothing\n\n", "---\n  # nothing"])
    func onlyComments(text: String) throws {
        let configuration = try withFile(text) { try RoostConfiguration.load(file: $0, environment: [:]) }
        #expect(configuration.values.allSatisfy { $0.origin == .standard })
    }

    @Test("keys may be written with dots, numbers with underscores; port 0 turns the operator's port off")
    func spellings() throws {
        let configuration = try withFile("http.port: 8_080\nops.port: 0\nlimits.private_only: on\n") { path in
            try RoostConfiguration.load(file: path, environment: [:])
        }
        #expect(configuration.httpPort == 8080)
        #expect(configuration.opsPort == nil)
        #expect(configuration.privateOnly)
    }

    private func origin(_ key: String, in configuration: RoostConfiguration) -> Origin? {
        configuration.values.first { $0.setting.key == key }?.origin
    }
}
