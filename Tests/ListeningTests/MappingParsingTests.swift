import Listening
import Testing

/// What `notify.channels` may say.
@Suite struct MappingParsingTests {
    @Test("commas and line breaks stand between mappings, and a channel may have several")
    func list() throws {
        let text =
            "\n  messages → room:{id} / new_message,\nmessages->public lobby/new,, Jobs.x-1 -> private jobs / done\n"
        let mappings = try NotificationMapping.parseList(text)
        #expect(mappings.map(\.channel) == ["messages", "messages", "Jobs.x-1"])
        #expect(
            try mappings
                == [
                    "messages -> private room:{id} / new_message", "messages -> public lobby / new",
                    "Jobs.x-1 -> jobs / done",
                ].flatMap { try NotificationMapping.parseList($0) })
        #expect(try NotificationMapping.parseList(" \n").isEmpty)
    }

    @Test(
        "what cannot work is refused with what to write instead",
        arguments: [
            ("messages", "it has no arrow; write CHANNEL -> TOPIC / EVENT"),
            ("messages -> room", "it names no event; write CHANNEL -> TOPIC / EVENT"),
            ("messages -> room /", "it names no event; write CHANNEL -> TOPIC / EVENT"),
            ("messages -> / new", "it names no topic; write CHANNEL -> TOPIC / EVENT"),
            ("messages -> public / new", "it names no topic; write CHANNEL -> TOPIC / EVENT"),
            ("-> room / new", "it names no channel of Postgres; write CHANNEL -> TOPIC / EVENT"),
            ("messages -> realtime:room / new", "write the topic without realtime:"),
            ("roost -> room / new", "the channel roost is the hub's own; notify on another one"),
            ("my messages -> room / new", "a channel is one name without quotes, as pg_notify takes it; write that"),
            ("\"Messages\" -> room / new", "a channel is one name without quotes, as pg_notify takes it; write that"),
            ("{c} -> room / new", "a channel is one name without quotes, as pg_notify takes it; write that"),
            ("messages -> room:{id / new", "a { without a }; write {{ for a brace"),
            ("messages -> room:id} / new", "a } without a {; write }} for a brace"),
            (
                "messages -> room:{a b} / new",
                "{a b} is no variable; a name has letters, digits and underscores, and {{ stands for a brace"
            ),
            (
                "messages -> room / {a..b}",
                "{a..b} is no variable; a name has letters, digits and underscores, and {{ stands for a brace"
            ),
        ])
    func refused(entry: String, problem: String) {
        let error = #expect(throws: MappingError.self) { try NotificationMapping.parseList("x -> y / z, " + entry) }
        #expect(error?.description == "'\(entry)': \(problem)")
    }

    @Test("a channel has 63 bytes at most, as in Postgres")
    func longChannels() throws {
        let longest = String(repeating: "é", count: 31) + "e"
        #expect(try NotificationMapping.parseList(longest + " -> t / e").first?.channel == longest)
        let error = #expect(throws: MappingError.self) { try NotificationMapping.parseList(longest + "e -> t / e") }
        #expect(
            error?.description.hasSuffix("Postgres takes no channel of more than 63 bytes; choose a shorter one")
                == true)
    }

    @Test("the same mapping twice would bring every message twice")
    func twice() {
        let error = #expect(throws: MappingError.self) {
            try NotificationMapping.parseList("a -> t / e, a->private t/e")
        }
        #expect(error?.description.contains("it stands there twice") == true)
    }

    @Test("a public channel that nobody may join is refused")
    func privateOnly() throws {
        #expect(try NotificationMapping.parseList("a -> t / e", privateOnly: true).count == 1)
        let error = #expect(throws: MappingError.self) {
            try NotificationMapping.parseList("a -> public t / e", privateOnly: true)
        }
        #expect(error?.description.contains("take the word public away") == true)
    }
}
