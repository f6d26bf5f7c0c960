import Administration
import CDemoFiles
import HTTP
import Postgres

/// The embedded files by their names.
enum DemoFiles {
    static let all: [String: [UInt8]] = {
        var count = 0
        let files = UnsafeBufferPointer(start: roost_demo_files(&count), count: count)
        return Dictionary(
            uniqueKeysWithValues: files.map { file in
                (String(cString: file.name), Array(UnsafeBufferPointer(start: file.bytes, count: file.length)))
            })
    }()
}

/// The chat page's files, embedded in the binary.
struct DemoPages {
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml",
    ]
    private static let headers: [(name: String, value: String)] = [
        ("cache-control", "no-cache"), ("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"),
        (
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ]

    /// Nil where there is no such file. `name` is what follows `/demo/`.
    func response(for name: Substring) -> HTTPResponse? {
        let name = name.isEmpty ? "index.html" : String(name)
        guard let bytes = DemoFiles.all[name], let type = Self.types[String(name.split(separator: ".").last ?? "")]
        else { return nil }
        return HTTPResponse(status: 200, contentType: type, headers: Self.headers, body: bytes)
    }
}

/// The sample chat's tables, functions and people.
package enum DemoSchema {
    /// What the page listens to. Who may see a row of the first two is a matter of membership in its conversation alone,
    /// and that is declared, as the README tells an operator to; the policies themselves are in chat.sql.
    private static let watchedTables: [(name: String, scope: ScopeChange)] = [
        ("public.messages", .declare(column: "conversation_id", members: ["public.conversation_participants"])),
        ("public.read_receipts", .declare(column: "conversation_id", members: ["public.conversation_participants"])),
        ("public.conversation_participants", .remove),
        ("public.users", .remove),
    ]

    /// Puts the triggers and scopes in place. May run at every start.
    package static func watch(conninfo: String) throws {
        for table in watchedTables { _ = try Watcher.watch(table.name, scope: table.scope, conninfo: conninfo) }
    }

    /// `streams.on_close` of the demo: the assistant's replies become messages.
    package static let keepsReplies = "select * from demo.keep_reply($1, $2)"

    /// Puts the chat in place, before Roost's own tables. May run at every start; what is there stays.
    package static func install(conninfo: String) throws {
        try run(["chat.sql", "api.sql", "seed.sql"], conninfo: conninfo)
    }

    /// Puts in place what the assistant needs, behind Roost's own tables. May run at every start.
    package static func installAssistant(conninfo: String) throws {
        try run(["assistant.sql"], conninfo: conninfo)
    }

    private static func run(_ scripts: [String], conninfo: String) throws {
        let session = try DatabaseSession(conninfo: conninfo)
        for script in scripts { try session.runScript(String(decoding: DemoFiles.all[script] ?? [], as: UTF8.self)) }
    }
}
