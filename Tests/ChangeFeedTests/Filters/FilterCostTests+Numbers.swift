import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

/// Filters that are cheap, but too many.
extension FeedTests.FilterCostTests {
    /// What Postgres has to decide for one row is bounded, and who has the most of it pays.
    @Test func theMostNumerousEndWhereARowHasTooMany() throws {
        let database = try Self.database()
        var limits = ConditionLimits()
        limits.mostForRow = 5
        try SubscriberStage.with(database, filters: limits) { stage in
            _ = try stage.join(Self.marker, as: "marker")
            let one = try stage.join(Self.entry("body=ilike.x%"), as: "ann")
            let many = try stage.join(
                Self.entry("body=ilike.%x"), Self.entry("body=ilike.%x%"), Self.entry("body=match.x"),
                Self.entry("id=gt.0"), as: "eve")
            let two = try stage.join(Self.entry("body=ilike.y%"), Self.entry("body=ilike.%x"), as: "bob")
            try database.run("insert into notes values (1, 'x')")
            try stage.settle(database)
            #expect(stage.refusal(many)?.hasPrefix("3 filters of this channel that only Postgres can decide") == true)
            #expect(stage.refusal(many)?.contains("limits.undecided_filters") == true)
            #expect(stage.refusal(one) == nil && stage.refusal(two) == nil)
            #expect(stage.filterEnds[.tooMany] == 3)
            try database.run("insert into notes values (2, 'x')")
            try stage.settle(database)
            // Its other binding goes on, and has every row.
            #expect(stage.shown("eve", many).count == 2)
            #expect(stage.shown("ann", one).count == 2)
            #expect(stage.shown("bob", two).count == 2)
        }
    }

    /// Ten thousand changes wait for a filter that is never decided: it ends, what its channel gets for certain comes in
    /// order, and the feed goes on.
    @Test func theFeedDoesNotWaitForFiltersWithoutEnd() throws {
        let database = try Self.database()
        try SubscriberStage.with(database) { stage in
            _ = try stage.join(Self.marker, as: "marker")
            let held = try stage.join(Self.entry("mood=eq.(held)"), Self.entry("id=gt.24990"), as: "eve")
            let others = try stage.join(Self.entry("id=gt.24990"), as: "ann")
            try stage.settle(database)
            let holder = try database.session()
            try holder.runScript("select pg_advisory_lock(7)")
            for start in stride(from: 1, to: 25_000, by: 5_000) {
                try database.run(
                    "insert into notes select n, 'x', '(good)' from generate_series(\(start), \(start + 4_999)) n")
            }
            try eventually("others have the last rows while the filter is undecided", within: .seconds(30)) {
                stage.shown("ann", others).count == 10
            }
            try eventually("its channel has what it gets for certain") {
                stage.shown("eve", held).count == 10
            }
            #expect(stage.refusal(held)?.contains("limits.undecided_filters") == true)
            #expect(stage.shown("eve", held) == stage.shown("ann", others))
            try holder.runScript("select pg_advisory_unlock(7)")
            try stage.settle(database)
        }
    }
}
