import Administration
import CDemoFiles
import HTTP
import Postgres

/// The embedded files by name.
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

    /// Returns nil if there is no such file. `name` is the path below `/demo/`.
    func response(for name: Substring) -> HTTPResponse? {
        let name = name.isEmpty ? "index.html" : String(name)
        guard let bytes = DemoFiles.all[name], let type = Self.types[String(name.split(separator: ".").last ?? "")]
        else { return nil }
        return HTTPResponse(status: 200, contentType: type, headers: Self.headers, body: bytes)
    }
}

/// The sample chat's tables, functions and users.
package enum DemoSchema {
    /// The tables that the page listens to. Membership in its conversation alone decides who may see a row of the first two; this is
    /// declared, as the README advises; the policies themselves are in chat.sql.
    private static let watchedTables: [(name: String, scope: ScopeChange)] = [
        ("public.messages", .declare(column: "conversation_id", members: ["public.conversation_participants"])),
        ("public.read_receipts", .declare(column: "conversation_id", members: ["public.conversation_participants"])),
        ("public.conversation_participants", .remove),
        ("public.users", .remove),
    ]

    /// Installs the triggers and scopes. May run at every start.
    package static func watch(conninfo: String) throws {
        for table in watchedTables { _ = try Watcher.watch(table.name, scope: table.scope, conninfo: conninfo) }
    }

    /// The demo's `streams.on_close`: the assistant's replies become messages.
    package static let keepsReplies = "select * from demo.keep_reply($1, $2)"

    /// Installs the chat, before Roost's own tables. May run at every start; existing objects stay.
    package static func install(conninfo: String) throws {
        try run(["chat.sql", "api.sql", "seed.sql"], conninfo: conninfo)
    }

    /// Installs the assistant's objects, after Roost's own tables. May run at every start.
    package static func installAssistant(conninfo: String) throws {
        try run(["assistant.sql"], conninfo: conninfo)
    }

    private static func run(_ scripts: [String], conninfo: String) throws {
        let session = try DatabaseSession(conninfo: conninfo)
        for script in scripts { try session.runScript(String(decoding: DemoFiles.all[script] ?? [], as: UTF8.self)) }
    }
}
