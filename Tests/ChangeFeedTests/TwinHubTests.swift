import Administration
import ChangeFeed
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Two hubs of one name.
    @Suite struct TwinHubTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().prepared("create table t (n int)", watching: "t")
        }

        func twin(_ log: Notes, node: String = "test") -> ChangeFeed {
            var rhythm = Doorbell.Rhythm()
            rhythm.safety = .milliseconds(200)
            let configuration = FeedConfiguration(conninfo: database.conninfo, node: node, rhythm: rhythm)
            return ChangeFeed(configuration: configuration, logger: .noting(log), consumer: Collector())
        }

        func hubs(_ node: String = "test") -> [Finding] {
            Doctor.examineDatabase(conninfo: database.conninfo, for: ExaminedHub(node: node)).filter {
                $0.subject == "hubs"
            }
        }

        @Test func aSecondHubIsNoticed() throws {
            let (first, second, third) = (Notes(), Notes(), Notes())
            let hub = twin(first)
            hub.start()
            defer { hub.stop() }
            try eventually("the first") { hub.status == .ready }
            #expect(hubs().map(\.message) == ["One hub is connected as test."])
            let other = twin(third, node: "other")
            other.start()
            defer { other.stop() }
            let double = twin(second)
            double.start()
            defer { double.stop() }
            try eventually("both") { double.status == .ready && other.status == .ready }
            let found = hubs()
            #expect(found.map(\.severity) == [.error])
            let beginning = "2 hubs are connected as test (on Postgres' own machine since"
            #expect(found.first?.message.hasPrefix(beginning) ?? false, "\(found)")
            #expect(hubs("other").map(\.severity) == [.good])
            let warning = "warning: Another hub is connected as test (on Postgres' own machine since"
            try eventually("the second says so: \(second.all)") { second.all.contains { $0.hasPrefix(warning) } }
            #expect(!third.all.contains { $0.contains("Another hub") })
            double.stop()
            try eventually("it is gone") { hubs().map(\.severity) == [.good] }
        }

        /// A feed that lost its connection does not take its own old session for another hub.
        @Test func aHubIsNotItsOwnTwin() throws {
            let log = Notes()
            let hub = twin(log)
            hub.start()
            defer { hub.stop() }
            try eventually("ready") { hub.status == .ready }
            let tester = database.tester
            let (reader, bell) = try (tester.reader(), tester.bell())
            // Frozen, the old session stays, and with it its share of the name.
            try frozen([reader]) {
                try tester.run("select pg_terminate_backend(\(bell))")
                try eventually("it connected anew") { hub.statistics.connections >= 2 && hub.status == .ready }
                // The one that was terminated has its share until it has ended.
                try eventually("two shares") {
                    try tester.value(
                        """
                        select count(*) from pg_locks join pg_database d on d.oid = database
                        where classid = 1919905649 and datname = current_database()
                        """) == "2"
                }
            }
            #expect(!log.all.contains { $0.contains("Another hub") })
        }
    }
}

/// What is judged of sessions that have a share of a hub's name, by values.
@Suite struct NodeClaimTests {
    let start = ContinuousClock.now

    func session(_ id: Int32, _ change: String?) -> HubSession {
        HubSession(backendID: id, place: "at 10.0.0.\(id)", change: change)
    }

    @Test func whoDoesSomethingIsAHub() {
        var claim = NodeClaim(at: start)
        #expect(claim.findRival([session(1, "a")], own: [], at: start) == nil)
        #expect(claim.lookAt == start + .seconds(2))
        #expect(claim.findRival([session(1, "a")], own: [], at: start + .seconds(2)) == nil)
        #expect(claim.findRival([session(1, "b")], own: [], at: start + .seconds(4))?.place == "at 10.0.0.1")
        #expect(claim.lookAt == start + .seconds(64), "once a minute")
        #expect(claim.findRival([session(1, "c")], own: [], at: start + .seconds(64)) != nil)
        #expect(claim.findRival([], own: [], at: start + .seconds(124)) == nil)
        #expect(claim.lookAt == start + .seconds(184))
    }

    @Test func whatIsLeftOfAHubIsNone() {
        var claim = NodeClaim(at: start)
        for second in stride(from: 0, to: 12, by: 2) {
            #expect(claim.findRival([session(1, "a")], own: [], at: start + .seconds(second)) == nil)
        }
        #expect(claim.findRival([], own: [], at: start + .seconds(12)) == nil)
        #expect(claim.lookAt == start + .seconds(72))
    }

    /// Where it may not be known what a session does, it is a hub if it stays.
    @Test func whoStaysIsAHub() {
        var claim = NodeClaim(at: start)
        #expect(claim.findRival([session(1, nil)], own: [], at: start) == nil)
        #expect(claim.findRival([session(1, nil)], own: [], at: start + .seconds(14)) == nil)
        #expect(claim.findRival([session(1, nil)], own: [], at: start + .seconds(15)) != nil)
    }

    @Test func ownSessionsAreNoHubs() {
        var claim = NodeClaim(at: start)
        #expect(claim.findRival([session(1, "a")], own: [1, 2], at: start) == nil)
        #expect(claim.lookAt == start + .seconds(60))
    }
}

/// What the log is told of long rounds of deleting, by values.
@Suite struct PruneRoundTests {
    let start = ContinuousClock.now

    @Test func shortRoundsAreNotToldOf() {
        var round = PruneReport()
        #expect(round.addBatch(1000, isLast: false, at: start) == nil)
        #expect(round.addBatch(5, isLast: true, at: start + .seconds(3)) == nil)
    }

    @Test func longOnesAreToldOfNowAndThen() {
        var round = PruneReport()
        #expect(round.addBatch(1000, isLast: false, at: start) == nil)
        #expect(
            round.addBatch(1000, isLast: false, at: start + .seconds(10))
                == "Old changes are being deleted: 2000 so far, in 10 s.")
        #expect(round.addBatch(1000, isLast: false, at: start + .seconds(19)) == nil)
        #expect(round.addBatch(7, isLast: true, at: start + .seconds(21)) == "Old changes are deleted: 3007, in 21 s.")
        #expect(round.addBatch(0, isLast: true, at: start + .seconds(60)) == nil, "another round")
    }
}
