import ChangeFeed

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

    /// Puts everything in place. May run at every start; what is there stays.
    package static func install(conninfo: String) throws {
        let session = try DatabaseSession(conninfo: conninfo)
        for script in ["chat.sql", "api.sql", "seed.sql"] {
            try session.run(String(decoding: DemoFiles.all[script] ?? [], as: UTF8.self))
        }
    }
}
