import Settings
import Testing

@Suite("A reload")
struct ReloadTests {
    private func load(_ environment: [String: String]) throws -> RoostConfiguration {
        try RoostConfiguration.load(environment: environment, files: [], cores: 3)
    }

    @Test("takes what it may change, leaves the rest as it is, and names both")
    func takes() throws {
        let before = try load(["ROOST_HTTP_PORT": "4100"])
        let found = try load(["ROOST_LIMITS_JOINS_PER_SECOND": "7", "ROOST_LOG_LEVEL": "debug"])
        let after = try before.reloaded(as: found)
        #expect(after.joinsPerSecond == 7)
        #expect(after.logLevel == "debug")
        #expect(after.httpPort == 4100)
        #expect(after.loops == 3)
        #expect(before.changes(in: after) == ["limits.joins_per_second", "log.level"])
        #expect(
            after.postponed(in: found).map(\.sentence) == [
                "http.port needs a restart: it is 4100 until then, and is to be 4000 (default)."
            ])
        #expect(before.postponed(in: after).isEmpty)
    }

    @Test("names no secret")
    func secrets() throws {
        let before = try load(["ROOST_DATABASE_URL": "postgres://me:s3cret@a/b"])
        let found = try load(["ROOST_DATABASE_URL": "postgres://me:s3cret@b/b"])
        let sentences = before.postponed(in: found).map(\.sentence)
        #expect(
            sentences == [
                "database.url needs a restart: it was changed (ROOST_DATABASE_URL), and the old one is in force until then."
            ])
    }

    @Test("of keys, limits, the log and the drain is in force at once; places, names and threads take a restart")
    func whatItChanges() {
        let reloaded = Set(Setting.all.filter(\.isReloaded).map { $0.key.prefix { $0 != "." } })
        #expect(reloaded.isSuperset(of: ["jwt", "jwks", "limits", "history", "log", "drain", "timeouts", "typing"]))
        for section in ["database", "node", "ops", "loops", "feed", "users", "apns"] {
            #expect(!reloaded.contains(section[...]), "\(section)")
        }
        let doors = Setting.all.filter { $0.key.hasPrefix("http.") && $0.isReloaded }
        #expect(doors.map(\.key) == ["http.origins", "http.token_cookie", "http.trusted_proxies"])
    }
}
