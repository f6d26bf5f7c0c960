import ChangeFeed
import Hub
import Stores
import Synchronization
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    @Suite struct PushActivityTests {
        private func stamp(_ store: PushStore, _ id: String, _ timestamp: Int64) throws -> StampOutcome? {
            try store.stamp([ActivityStamp(id: Name(id), timestamp: timestamp, version: 1, state: Array("{}".utf8))])
                .first
        }

        @Test func onlyItsUserReplacesTheToken() throws {
            let store = try PushStage.bare().hub()
            let first = try store.register(activity: "a", at: .sample(1), about: "c", by: .sample("ann", session: "s"))
            guard case .registered(let activity) = first else { return #expect(Bool(false), "\(first)") }
            #expect(activity.user == "ann" && activity.session == "s" && activity.conversation == "c")
            #expect(activity.timestamp == 0 && activity.state == nil)
            #expect(
                try store.register(activity: "a", at: .sample(2), about: nil, by: .sample("bob")) == .othersActivity)
            #expect(try store.activity("a")?.activity.destination == .sample(1))
            let state = Array(#"{"unread":3}"#.utf8)
            let stamped = try store.stamp([ActivityStamp(id: "a", timestamp: 100, version: 4, state: state)])
            #expect(stamped == [.granted])
            guard
                case .registered(let rotated) = try store.register(
                    activity: "a", at: .sample(3), about: nil, by: .sample("ann"))
            else { return #expect(Bool(false), "refused") }
            #expect(rotated.destination == .sample(3) && rotated.conversation == "c")
            #expect(rotated.timestamp == 100 && rotated.version == 4 && rotated.state == state)
            #expect(rotated.startedAt == activity.startedAt && rotated.registeredAt >= activity.registeredAt)
        }

        @Test func endsForItsUserAndItsHub() throws {
            let stage = try PushStage.bare()
            let (store, other) = (try stage.hub("a"), try stage.hub("b"))
            _ = try store.register(activity: "x", at: .sample(1), about: nil, by: .sample("ann"))
            _ = try store.register(activity: "y", at: .sample(2), about: nil, by: .sample("ann"))
            #expect(try store.remove(activity: "x", of: "bob") == nil)
            #expect(try store.remove(activity: "x", of: "ann")?.activity.destination == .sample(1))
            #expect(try store.remove(activity: "x", of: "ann") == nil)
            #expect(try store.activity("x")?.hasEnded == true)
            #expect(try store.activities(of: "ann").map(\.id) == ["y"])
            try other.end(activities: ["y"])
            #expect(try store.ownActivities().map(\.id) == ["y"])
            try store.end(activities: ["y"])
            #expect(try store.ownActivities().isEmpty)
            guard case .refused(let ended)? = try stamp(store, "y", 9) else { return #expect(Bool(false), "granted") }
            #expect(ended.hasEnded)
            #expect(try stamp(store, "nobody's", 9) == .unknown)
        }

        /// What a backend posted outlives the process and the hub, before it is sent and after.
        @Test func postsAreWrittenDown() throws {
            let stage = try PushStage.bare()
            let (store, other) = (try stage.hub("a"), try stage.hub("b"))
            for id in ["x", "y"] {
                _ = try store.register(activity: Name(id), at: .sample(1), about: nil, by: .sample("ann"))
            }
            func kept(_ id: Name) throws -> (isPosted: Bool, post: String?) {
                let activity = try #require(try store.activity(id)).activity
                return (activity.isPosted, activity.post.map { String(decoding: $0, as: UTF8.self) })
            }
            let post = Array(#"{"state":{"é":"\u0000"},"hub":["connected"]}"#.utf8)
            try other.keep(posts: ["x": post])
            #expect(try kept("x") == (false, nil), "another hub's")
            try store.keep(posts: ["x": post, "y": Array("{}".utf8), "nobody's": post])
            #expect(try kept("x") == (true, String(decoding: post, as: UTF8.self)))
            #expect(try kept("y") == (true, "{}"))
            func stamp(_ timestamp: Int64, _ post: [UInt8]?) -> ActivityStamp {
                ActivityStamp(
                    id: "x", timestamp: timestamp, version: 1, state: Array("{}".utf8), isPosted: true, post: post)
            }
            #expect(try store.stamp([stamp(5, post)]) == [.granted])
            let adopted = try other.adopt("x")
            #expect(adopted.map(\.post) == [post] && adopted.map(\.isPosted) == [true])
            guard case .refused(let owned)? = try store.stamp([stamp(6, nil)]).first else {
                return #expect(Bool(false), "granted")
            }
            #expect(owned.activity.post == post)
            #expect(try other.stamp([stamp(7, nil)]) == [.granted])
            #expect(try kept("x") == (true, nil), "the state is the whole of it")
        }

        @Test func stampsOnlyGrow() throws {
            let stage = try PushStage.bare()
            let (store, other) = (try stage.hub("a"), try stage.hub("b"))
            for id in ["x", "y"] {
                _ = try store.register(activity: Name(id), at: .sample(1), about: nil, by: .sample("ann"))
            }
            #expect(try stamp(store, "x", 10) == .granted)
            guard case .refused(let now)? = try stamp(store, "x", 10) else { return #expect(Bool(false), "granted") }
            #expect(now.activity.timestamp == 10 && now.node == "a")
            guard case .refused(let theirs)? = try stamp(other, "x", 11) else { return #expect(Bool(false), "granted") }
            #expect(theirs.node == "a")
            #expect(try Set(other.adopt(activitiesOf: ["ann", "bob"]).map(\.id)) == ["x", "y"])
            guard case .refused? = try stamp(store, "x", 11) else { return #expect(Bool(false), "granted") }
            let both = try other.stamp(
                ["y", "x"].map { ActivityStamp(id: $0, timestamp: 10, version: 1, state: []) })
            guard case .refused = both[1] else { return #expect(Bool(false), "granted") }
            #expect(both[0] == .granted)
        }

        /// Two hubs take the same activities from each other all the time, and both stamp what they take for theirs.
        @Test func twoHubsNeverGoBack() throws {
            let stage = try PushStage.bare()
            let ids = (0..<5).map { "activity \($0)" }
            let first = try stage.hub("0")
            for id in ids { _ = try first.register(activity: Name(id), at: .sample(1), about: nil, by: .sample("ann")) }
            let granted = Mutex<[String: [Int64]]>([:])
            let refused = Mutex(0)
            try concurrently(2) { number in
                let store = try stage.hub("\(number)")
                for round in 1...150 {
                    if round.isMultiple(of: 3) { _ = try store.adopt(activitiesOf: ["ann"]) }
                    let requests = (number == 0 ? ids : ids.reversed()).map {
                        ActivityStamp(id: Name($0), timestamp: Int64(round), version: number, state: [])
                    }
                    let outcomes = try store.stamp(requests)
                    for (request, outcome) in zip(requests, outcomes) {
                        switch outcome {
                        case .granted: granted.withLock { $0[request.id.text, default: []].append(request.timestamp) }
                        case .refused(let now):
                            refused.withLock { $0 += 1 }
                            // Never a stale answer: with it the hub would ask for the same again and again.
                            #expect(now.node != "\(number)" || now.activity.timestamp >= request.timestamp)
                        case .unknown: #expect(Bool(false), "unknown")
                        }
                    }
                }
            }
            let stamps = granted.withLock { $0 }
            for id in ids {
                let mine = stamps[id] ?? []
                #expect(Set(mine).count == mine.count, "each timestamp is granted once")
                #expect(mine.max() == 150)
            }
            #expect(refused.withLock { $0 } > 0, "they met")
        }

        @Test func activitiesFollowTheirUser() throws {
            let stage = try PushStage.bare()
            let (store, other) = (try stage.hub("a"), try stage.hub("b"))
            for (id, user) in [("x", "ann"), ("y", "bob"), ("z", "cat")] {
                _ = try store.register(activity: Name(id), at: .sample(1), about: nil, by: .sample(user))
            }
            try stage.online("ann", at: "b")
            try stage.online("bob", at: "a")
            try stage.online("bob", at: "b")
            #expect(try other.adoptReturned().map(\.id) == ["x"], "bob is at both")
            #expect(try store.adoptReturned().isEmpty)
            #expect(try other.adopt("z").map(\.id) == ["z"])
            #expect(try other.adopt("z").isEmpty)
            #expect(try other.adopt("z\u{0}").isEmpty)
            #expect(try store.ownActivities().map(\.id) == ["y"])
        }

        @Test func deliveryIsRemembered() throws {
            let store = try PushStage.bare().hub()
            _ = try store.register(activity: "x", at: .sample(1), about: nil, by: .sample("ann"))
            let request = ActivityStamp(id: "x", timestamp: 10, version: 1, state: Array("{}".utf8), isPosted: true)
            #expect(try store.stamp([request]) == [.granted])
            let stamped = try #require(try store.activity("x")?.activity)
            #expect(stamped.isPosted && !stamped.wasDelivered)
            try store.noteDelivered(["x": 9, "unknown": 3])
            #expect(try store.activity("x")?.activity.wasDelivered == false)
            try store.noteDelivered(["x": 10])
            try store.noteDelivered(["x": 9])
            #expect(try store.activity("x")?.activity.wasDelivered == true)
            #expect(try stamp(store, "x", 11) == .granted)
            let later = try #require(try store.activity("x")?.activity)
            #expect(!later.wasDelivered && !later.isPosted)
        }

        @Test func orphansAreAdoptedOnce() throws {
            let stage = try PushStage.bare()
            let dead = try stage.hub("dead")
            for number in 0..<20 {
                _ = try dead.register(activity: Name("\(number)"), at: .sample(number), about: nil, by: .sample("ann"))
            }
            try dead.end(activities: ["3"])
            #expect(try stage.hub("a").adoptOrphans().isEmpty)
            try stage.bury("dead")
            let adopted = Mutex<[String]>([])
            try concurrently(3) { number in
                let mine = try stage.hub("\(number)").adoptOrphans().map(\.id.text)
                adopted.withLock { $0 += mine }
            }
            let all = adopted.withLock { $0 }
            #expect(all.count == 19 && Set(all).count == 19 && !all.contains("3"))
        }
    }
}
