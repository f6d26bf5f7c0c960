import ChangeFeed
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What those are told whom policies fail for.
    @Suite struct PolicyTroubleTests {
        private static let messages = #"{"event":"*","schema":"public","table":"messages"}"#

        @Test("whom a policy fails for is told so, whoever comes is as well, and all of them when it works again")
        func aPolicyThatFails() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.messages, as: "ann", "bob")
                var id = 0
                // A change of policies counts within a second.
                func write(_ body: String, until isDone: () -> Bool) throws {
                    try eventually("after \(body): \(stage.told)") {
                        id += 1
                        try database.run("insert into messages values (\(id), 1, '\(body)')")
                        return isDone()
                    }
                }
                try write("before") { !stage.shown("ann", group).isEmpty && !stage.shown("bob", group).isEmpty }
                try database.run(
                    """
                    create policy broken on messages as restrictive for select
                        using (exists (select from messages m where m.id = messages.id))
                    """)
                try write("unseen") { Set(stage.told.map(\.subject)) == ["ann", "bob"] }
                for told in stage.told {
                    #expect(told.message.hasPrefix("RlsPolicyError: ") && told.message.contains("infinite recursion"))
                    #expect(told.message.contains("public.messages"))
                }
                // The same person with another device.
                let other = try stage.join(
                    Self.messages, #"{"event":"*","schema":"public","table":"marker"}"#, as: "ann")
                try eventually("a word to who comes") { stage.told.count == 3 }
                #expect(stage.told.last?.subject == "ann")
                try database.run("drop policy broken on messages")
                // It may be over, so whoever comes from now on is told nothing of it.
                try eventually("the catalog is read") {
                    let count = stage.told.count
                    let late = try stage.join(Self.messages, as: "bob")
                    try stage.settle(database)
                    try stage.leave(late)
                    return stage.told.count == count
                }
                func again() -> Int { stage.told.count { $0.message.contains("are shown to you again") } }
                try write("after") { stage.shown("ann", other).contains { $0.contains("after") } }
                // Whoever came and left meanwhile may have been told as well.
                try eventually("the end of it: \(stage.told)") { again() >= 3 }
                #expect(again() <= stage.told.count - again())
                try eventually("the row") { stage.shown("bob", group).contains { $0.contains("after") } }
            }
        }

        @Test("of rows that a policy fails on, each by itself, its reader is told once")
        func aRowThatAPolicyFailsOn() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                "create policy divides on messages as restrictive for select using (1 / (id % 5) is not null)")
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.messages, as: "ann")
                for (id, body) in [(4, "fine"), (5, "poison"), (6, "fine, too"), (10, "poison"), (11, "and more")] {
                    try database.run("insert into messages values (\(id), 1, '\(body)')")
                }
                try eventually("the last row", within: .seconds(60)) {
                    stage.shown("ann", group).contains { $0.contains("and more") }
                }
                #expect(stage.shown("ann", group).count == 3)
                #expect(stage.told.count == 1)
                #expect(stage.told.first?.message.contains("SQLSTATE 22012") == true)
            }
        }
    }
}
