import ChangeFeed

/// The sample chat's tables, functions and people.
package enum DemoSchema {
    /// What the page listens to.
    package static let watchedTables = ["public.messages", "public.read_receipts", "public.conversation_participants"]

    /// Puts everything in place. May run at every start; what is there stays.
    package static func install(conninfo: String) throws {
        let session = try DatabaseSession(conninfo: conninfo)
        for script in ["chat.sql", "api.sql", "seed.sql"] {
            try session.run(String(decoding: DemoFiles.all[script] ?? [], as: UTF8.self))
        }
    }
}
