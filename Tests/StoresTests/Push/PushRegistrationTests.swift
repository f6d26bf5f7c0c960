import Administration
import ChangeFeed
import Hub
import Postgres
import Stores
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    @Suite struct PushRegistrationTests {
        private func tokens(_ store: PushStore, _ user: String) throws -> [PushToken] {
            try store.devices(of: Name(user)).map(\.destination.token)
        }

        @Test func tokensRotateWithTheSession() throws {
            let stage = try PushStage.bare()
            let store = try stage.hub()
            let ann = PushBearer.sample("ann", session: "phone")
            _ = try store.register(.sample(1), .alert, by: ann)
            _ = try store.register(.sample(2), .alert, by: ann)
            #expect(try tokens(store, "ann") == [PushDestination.sample(2).token])
            _ = try store.register(.sample(3), .alert, by: .sample("ann", session: "tablet"))
            _ = try store.register(.sample(4, .production), .alert, by: ann)
            _ = try store.register(.sample(5), .start(attributesType: "Trip"), by: ann)
            _ = try store.register(.sample(6), .start(attributesType: "Chat"), by: ann)
            #expect(try tokens(store, "ann") == [6, 5, 4, 3].map { PushDestination.sample($0).token })
            _ = try store.register(.sample(7), .start(attributesType: "Trip"), by: ann)
            #expect(try tokens(store, "ann") == [7, 6, 4, 3].map { PushDestination.sample($0).token })
            #expect(try store.devices(of: "ann")[0].kind == .start(attributesType: "Trip"))
            #expect(try store.devices(of: "ann")[3].kind == .alert)
        }

        /// Without a session nobody can tell two phones from a token that rotated, unless the app says so.
        @Test func tokensWithoutASession() throws {
            let store = try PushStage.bare().hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann"))
            _ = try store.register(.sample(2), .alert, by: .sample("ann"))
            #expect(try tokens(store, "ann").count == 2)
            _ = try store.register(.sample(9), .alert, by: .sample("bob"))
            _ = try store.register(
                .sample(3), .alert, by: .sample("ann"), replacing: PushDestination.sample(1).token)
            #expect(try tokens(store, "ann") == [3, 2].map { PushDestination.sample($0).token })
            _ = try store.register(
                .sample(4), .alert, by: .sample("ann"), replacing: PushDestination.sample(9).token)
            #expect(try tokens(store, "bob").count == 1, "nobody replaces another's token")
        }

        /// A session is one device of each service, and a browser's keys come back with its alerts.
        @Test func devicesOfAllServices() throws {
            let store = try PushStage.bare().hub()
            let ann = PushBearer.sample("ann", session: "phone")
            let android = try ["cX:0123456789abcdef", "cY:0123456789abcdef"].map {
                PushDestination(token: try #require(PushToken($0, of: .fcm)), bundle: "")
            }
            let browser = PushDestination(
                token: try #require(PushToken("https://push.example.com/a?b=c", of: .web)), bundle: "")
            let keys = try #require(
                WebPushKeys(
                    publicKey: [4] + [UInt8](repeating: 7, count: 64), secret: [UInt8](repeating: 9, count: 16)))
            _ = try store.register(.sample(1), .alert, by: ann)
            for destination in android { _ = try store.register(destination, .alert, by: ann) }
            _ = try store.register(browser, .alert, by: ann, keys: keys)
            #expect(
                try store.devices(of: "ann").map(\.destination) == [browser, android[1], .sample(1)])
            _ = try store.enqueue([.sample("m", "ann")])
            let devices = try #require(store.takeDue(limit: 1).alerts.first?.devices)
            #expect(devices.first { $0.destination == browser }?.keys == keys)
            #expect(devices.filter { $0.keys == nil }.count == 2)
            try store.settle(
                devices.map { AlertSettlement(message: "m", destination: $0.destination, outcome: "delivered") })
            #expect(try store.unsettledAlerts().isEmpty)
            #expect(
                try store.drop(android[1], ifRegisteredBefore: try #require(devices.map(\.registeredAt).max()) + 1) == 1
            )
            #expect(try store.drop(browser, ifRegisteredBefore: 1) == 0, "it was registered since")
        }

        @Test func tokenMovesWithThePhone() throws {
            let store = try PushStage.bare().hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann", session: "one"))
            _ = try store.register(.sample(1), .alert, by: .sample("bob", session: "two"))
            #expect(try tokens(store, "ann").isEmpty)
            #expect(try tokens(store, "bob").count == 1)
            #expect(try !store.unregister(PushDestination.sample(1).token, of: "ann"))
            #expect(try store.unregister(PushDestination.sample(1).token, of: "bob"))
            #expect(try tokens(store, "bob").isEmpty)
        }

        /// Whatever a registration says, a token is one phone, and Apple's word on where it belongs stays.
        @Test func environmentThatWasFoundIsKept() throws {
            let stage = try PushStage.bare()
            let store = try stage.hub()
            func places(_ user: Name) throws -> [PushEnvironment] {
                try store.devices(of: user).map(\.destination.environment)
            }
            _ = try store.register(.sample(1, .production), .alert, by: .sample("ann"))
            _ = try store.register(.sample(1, .sandbox), .alert, by: .sample("ann"))
            _ = try store.register(.sample(1, .production), .alert, by: .sample("ann"))
            #expect(try places("ann") == [.production], "what is said last counts, as long as nobody knows")
            #expect(try store.keep(.sandbox, of: .sample(1, .production)) == 1)
            #expect(try store.keep(.sandbox, of: .sample(1, .production)) == 0)
            #expect(try places("ann") == [.sandbox])
            let again = try store.register(.sample(1, .production), .alert, by: .sample("bob"))
            #expect(again.destination.environment == .sandbox)
            #expect(try places("bob") == [.sandbox])
            #expect(try places("ann").isEmpty)
            // Of an activity also over its next token.
            _ = try store.register(activity: "a", at: .sample(7, .production), about: nil, by: .sample("ann"))
            #expect(try store.keep(.sandbox, of: .sample(7, .production)) == 1)
            let next = try store.register(activity: "a", at: .sample(8, .production), about: nil, by: .sample("ann"))
            guard case .registered(let activity) = next else {
                Issue.record("\(next)")
                return
            }
            #expect(activity.destination == .sample(8, .sandbox))
            #expect(try store.activity("a")?.activity.destination == .sample(8, .sandbox))
        }

        /// The environment changes between a message's alert to one user and its alert to the phone's next user.
        @Test func messageGoesToAPhoneOnceWhateverItsEnvironment() throws {
            let stage = try PushStage.bare()
            let store = try stage.hub()
            _ = try store.register(.sample(1, .production), .alert, by: .sample("ann"))
            _ = try store.enqueue([.sample("m", "ann")])
            let taken = try store.takeDue(limit: 1)
            #expect(taken.alerts.first?.devices.map(\.destination) == [.sample(1, .production)])
            #expect(try store.keep(.sandbox, of: .sample(1, .production)) == 1)
            try store.settle([AlertSettlement(message: "m", destination: .sample(1, .production), outcome: "delivered")]
            )
            _ = try store.register(.sample(1), .alert, by: .sample("bob"))
            _ = try store.enqueue([.sample("m", "bob"), .sample("n", "bob")])
            let next = try store.takeDue(limit: 10)
            #expect(next.alerts.map(\.message) == ["n"] && next.withoutDevice == 1)
            #expect(next.alerts.first?.devices.map(\.destination) == [.sample(1)])
            #expect(try stage.lines("select outcome from roost.alert_device where message = 'm'") == ["delivered"])
        }

        /// A token that was registered for both environments is one from here on: the newest registration's.
        @Test func upgradeKeepsTheNewestOfATokensRegistrations() throws {
            let database = try PostgresCluster.shared.database()
            try database.run(
                Migrator.script(upTo: 20)
                    + """
                    insert into roost.push_device
                        (token, environment, bundle, kind, user_id, role, claims, registered_at)
                    select t, e, 'app', 'alert', u, 'authenticated', '{}', now() - h * interval '1 hour'
                    from (values ('aa', 'sandbox', 'ann', 2), ('aa', 'production', 'bob', 1), ('bb', 'sandbox', 'cat', 9))
                        v (t, e, u, h);
                    insert into roost.alert_device
                        (message, token, environment, bundle, user_id, node, registered_at, outcome)
                    select 'm', 'aa', e, 'app', 'ann', 'a', now(), 'delivered' from unnest('{sandbox,production}'::text[]) e;
                    """)
            try Migrator.migrate(conninfo: database.conninfo)
            let stage = PushStage(database)
            #expect(
                try stage.lines(
                    "select token || ' ' || environment || ' ' || user_id from roost.push_device order by 1")
                    == ["aa production bob", "bb sandbox cat"])
            #expect(try stage.lines("select count(*) from roost.alert_device") == ["1"])
        }

        @Test func phonesOfAUserAreBounded() throws {
            let store = try PushStage.bare().hub()
            for number in 1...PushStore.devicesPerUser + 2 {
                _ = try store.register(.sample(number), .alert, by: .sample("ann"))
            }
            let left = try tokens(store, "ann")
            #expect(left.count == PushStore.devicesPerUser)
            #expect(left.last == PushDestination.sample(3).token)
            for number in 1...PushStore.activitiesPerUser {
                _ = try store.register(activity: Name("\(number)"), at: .sample(number), about: nil, by: .sample("ann"))
            }
            let more = try store.register(activity: "more", at: .sample(1), about: nil, by: .sample("ann"))
            #expect(more == .tooMany)
            let again = try store.register(activity: "1", at: .sample(99), about: nil, by: .sample("ann"))
            #expect(again != .tooMany, "a token rotates all the same")
        }

        @Test func goneOnlyIfRegisteredBefore() throws {
            let store = try PushStage.bare().hub()
            let first = try store.register(.sample(1), .alert, by: .sample("ann"))
            _ = try store.register(activity: "a1", at: .sample(1), about: nil, by: .sample("ann"))
            #expect(try store.drop(.sample(1), ifRegisteredBefore: first.registeredAt) == 0)
            #expect(try store.drop(.sample(1, .production), ifRegisteredBefore: nil) == 0)
            #expect(try store.drop(.sample(1), ifRegisteredBefore: first.registeredAt + 60_000) == 2)
            #expect(try tokens(store, "ann").isEmpty)
            #expect(try store.activities(of: "ann").isEmpty)
            let again = try store.register(.sample(1), .alert, by: .sample("ann"))
            #expect(again.registeredAt > first.registeredAt)
            #expect(try store.drop(.sample(1), ifRegisteredBefore: first.registeredAt) == 0)
            #expect(try store.drop(.sample(1), ifRegisteredBefore: nil) == 1)
        }

        @Test func claimsAreStoredWithoutTheirTime() throws {
            let stage = try PushStage.bare()
            let store = try stage.hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann", session: "s", more: #","org":7"#))
            _ = try store.register(activity: "a", at: .sample(1), about: nil, by: .sample("ann", session: "s"))
            #expect(
                try stage.lines("select claims from roost.push_device")
                    == [#"{"org": 7, "sub": "ann", "role": "authenticated", "session_id": "s"}"#])
            #expect(
                try stage.lines("select claims from roost.push_activity")
                    == [#"{"sub": "ann", "role": "authenticated", "session_id": "s"}"#])
        }

        /// A hub that is not the owner goes on after the upgrade.
        @Test func rightsComeWithTheUpgrade() throws {
            let database = try PostgresCluster.shared.database()
            try database.run(
                Migrator.script(upTo: 7)
                    + "do $$ begin create role push_hub login; exception when duplicate_object then null; end $$;"
                    + "grant usage on schema roost to push_hub; grant all on all tables in schema roost to push_hub;")
            try Migrator.migrate(conninfo: database.conninfo)
            let hub = PushStage(database.role("push_hub"))
            let store = try hub.hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann"))
            _ = try store.enqueue([.sample("m", "ann")])
            #expect(try store.takeDue(limit: 1).alerts.count == 1)
            #expect(try store.waitingAlerts().isEmpty)
            let lacking = Doctor.examine(conninfo: hub.database.conninfo).filter { $0.subject == "rights" }
            #expect(!lacking.contains { $0.message.contains("push") || $0.message.contains("alert") })
        }

        /// libpq cuts a text off at a NUL: what is left must not be somebody else.
        @Test func nulIsNobody() throws {
            func bearer(_ json: String, _ user: String?) -> PushBearer? {
                PushBearer(
                    Claims(
                        role: "authenticated", subject: user.map { Name($0) }, expiresAt: .max, json: Array(json.utf8)))
            }
            #expect(bearer(#"{"sub":"ann\u0000x"}"#, "ann\u{0}x") == nil)
            #expect(bearer(#"{"sub":"ann","deep":[{"a\u0000":1}]}"#, "ann") == nil)
            #expect(bearer(#"{"role":"authenticated"}"#, nil) == nil)
            #expect(bearer(#"{"sub":"ann","deep":[{"a":"\\u0000"}]}"#, "ann") != nil)
            let store = try PushStage.bare().hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann"))
            _ = try store.register(activity: "a", at: .sample(1), about: nil, by: .sample("ann"))
            #expect(try store.activity("a\u{0}b") == nil)
            #expect(throws: PostgresError.self) { try store.devices(of: "ann\u{0}x") }
            #expect(throws: PostgresError.self) { try store.remove(activity: "a\u{0}x", of: "ann") }
            let stamped = try store.stamp([ActivityStamp(id: "a\u{0}x", timestamp: 5, version: 1, state: [])])
            #expect(stamped == [.unknown])
            #expect(!store.isBroken)
        }
    }
}
