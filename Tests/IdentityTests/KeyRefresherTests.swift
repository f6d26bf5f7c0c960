import Foundation
import Identity
import Testing
import Wire

/// Other keys and other rules while tokens are verified.
@Suite struct KeyReloadTests {
    private let old = "the old secret of thirty-two bytes or more"
    private let new = "the new secret of thirty-two bytes or more"

    private func settings(_ secrets: String..., issuers: [String] = []) -> KeySettings {
        var settings = KeySettings()
        settings.secrets = secrets
        settings.rules = ClaimRules(issuers: issuers)
        return settings
    }

    private func token(_ secret: String, issuer: String = "a") throws -> String {
        TokenMint(secret: secret).mint(
            role: "anon", subject: nil, lifetime: 3600, now: testTime,
            extra: try JSON(parsing: Array(#"{"iss":"\#(issuer)"}"#.utf8)))
    }

    @Test("a secret is rotated, and what was verified before is verified again")
    func secrets() async throws {
        let (logger, _) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(old), logger: logger)
        let (first, second) = (try token(old), try token(new))
        #expect(refresher.refusal(first) == nil)
        #expect(refresher.refusal(second) == .signatureInvalid)
        try await refresher.applySettings(settings(new, old))
        #expect(refresher.refusal(first) == nil)
        #expect(refresher.refusal(second) == nil)
        try await refresher.applySettings(settings(new))
        #expect(refresher.refusal(first) == .signatureInvalid)
        #expect(refresher.refusal(second) == nil)
    }

    @Test("what a token must claim changes with the keys")
    func rules() async throws {
        let (logger, _) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(old), logger: logger)
        let (ours, others) = (try token(old, issuer: "us"), try token(old, issuer: "them"))
        #expect(refresher.refusal(others) == nil)
        try await refresher.applySettings(settings(old, issuers: ["us"]))
        #expect(refresher.refusal(ours) == nil)
        #expect(refresher.refusal(others) == .issuerRefused)
        try await refresher.applySettings(settings(old))
        #expect(refresher.refusal(others) == nil)
    }

    @Test("a file that cannot be used changes nothing; one that can is watched from then on")
    func files() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "roost-keys-\(UUID().uuidString).json").path
        let (logger, _) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(old), logger: logger)
        let inSecret = try token(old)
        var withFile = settings()
        withFile.file = path
        withFile.intervals.look = .milliseconds(10)
        let asked = withFile
        await #expect(throws: KeyProblem.self) { try await refresher.applySettings(asked) }
        #expect(refresher.refusal(inSecret) == nil, "all is as it was")
        let (first, second) = (SigningKey(for: .es256), SigningKey(for: .es256))
        try keySet(first.jwk(kid: "1")).write(toFile: path, atomically: true, encoding: .utf8)
        defer {
            do { try FileManager.default.removeItem(atPath: path) } catch { print("cannot remove \(path): \(error)") }
        }
        try await refresher.applySettings(asked)
        #expect(refresher.refusal(first.token(.es256, kid: "1")) == nil)
        #expect(refresher.refusal(inSecret) != nil)
        try keySet(second.jwk(kid: "2")).write(toFile: path, atomically: true, encoding: .utf8)
        let changed = second.token(.es256, kid: "2")
        try await eventually("the changed file") { refresher.refusal(changed) == nil }
    }

    @Test("a URL that does not answer at a reload loses none of its keys; another URL's are not taken for them")
    func urls() async throws {
        let key = SigningKey(for: .es256)
        let server = KeyServer(.body(keySet(key.jwk(kid: "k"))))
        defer { server.stop() }
        var withURL = settings()
        withURL.url = server.url
        withURL.intervals.look = .seconds(3600)
        let (logger, _) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(withURL, logger: logger)
        let token = key.token(.es256, kid: "k")
        #expect(refresher.refusal(token) == nil)
        server.answer(.status(500))
        withURL.secrets = [old]
        try await refresher.applySettings(withURL)
        #expect(refresher.refusal(token) == nil)
        #expect(refresher.refusal(try self.token(old)) == nil, "and it was a reload")
        withURL.url = server.url + "/elsewhere"
        try await refresher.applySettings(withURL)
        #expect(refresher.refusal(token) == .keyUnknown)
    }
}

@Suite struct KeyFileTests {
    private let path = FileManager.default.temporaryDirectory.appending(path: "roost-keys-\(UUID().uuidString).json")
        .path
    private let old = SigningKey(for: .es256)
    private let new = SigningKey(for: .edDSA)

    private func write(_ text: String) throws { try text.write(toFile: path, atomically: true, encoding: .utf8) }

    private func remove() {
        do { try FileManager.default.removeItem(atPath: path) } catch { print("cannot remove \(path): \(error)") }
    }

    private func settings(look: Duration) -> KeySettings {
        var settings = KeySettings()
        settings.file = path
        settings.intervals.look = look
        return settings
    }

    @Test("a changed file is read by the clock, and what it no longer has is out")
    func changes() async throws {
        try write(keySet(old.jwk(kid: "old")))
        defer { remove() }
        let (logger, _) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(look: .milliseconds(10)), logger: logger)
        let (oldToken, newToken) = (old.token(.es256, kid: "old"), new.token(.edDSA, kid: "new"))
        #expect(refresher.refusal(oldToken) == nil)
        // Written and not asked for: only the clock can find it.
        try write(keySet(old.jwk(kid: "old"), new.jwk(kid: "new")))
        try await eventually("the new key") { refresher.refusal(newToken) == nil }
        #expect(refresher.refusal(oldToken) == nil)
        try write(keySet(new.jwk(kid: "new")))
        try await eventually("the old key is gone") { refresher.refusal(oldToken) == .keyUnknown }
        #expect(refresher.refusal(newToken) == nil)
    }

    @Test("a token that names a new key makes it look at once")
    func unknownKey() async throws {
        try write(keySet(old.jwk(kid: "old")))
        defer { remove() }
        let (logger, _) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(look: .seconds(3600)), logger: logger)
        try write(keySet(new.jwk(kid: "new")))
        let token = new.token(.edDSA, kid: "new")
        #expect(refresher.refusal(token) == .keyUnknown, "refused at once, never waited for")
        try await eventually("the new key") { refresher.refusal(token) == nil }
    }

    @Test(
        "a file that goes bad leaves the last good keys, and is complained of once",
        arguments: ["", "{", "{\"keys\":[]}"])
    func goesBad(_ text: String) async throws {
        try write(keySet(old.jwk(kid: "old")))
        defer { remove() }
        let (logger, lines) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(look: .milliseconds(5)), logger: logger)
        try write(text)
        func complaints() -> [String] { lines.all.filter { $0.hasPrefix("warning") } }
        try await eventually("a complaint") { !complaints().isEmpty }
        try write(text + " ")
        try write(keySet(new.jwk(kid: "new")))
        let token = new.token(.edDSA, kid: "new")
        try await eventually("good again") { refresher.refusal(token) == nil }
        #expect(complaints().count == 1)
        #expect(complaints().first?.contains(path) == true)
    }

    @Test("a file that goes away leaves the last good keys")
    func goesAway() async throws {
        try write(keySet(old.jwk(kid: "old")))
        let (logger, lines) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(look: .milliseconds(5)), logger: logger)
        remove()
        try await eventually("a complaint") { lines.all.contains { $0.contains("no such file") } }
        #expect(refresher.refusal(old.token(.es256, kid: "old")) == nil)
    }

    @Test(
        "at the start a faulty file is an error that names it",
        arguments: [nil, "", "{\"keys\":[]}", "-----BEGIN PUBLIC KEY-----"])
    func faultyAtTheStart(_ text: String?) async throws {
        if let text { try write(text) }
        defer { if text != nil { remove() } }
        let (logger, _) = LogRecorder.open()
        let settings = settings(look: .seconds(3600))
        let problem = await #expect(throws: KeyProblem.self) {
            _ = try await KeyRefresher.open(settings, logger: logger)
        }
        #expect(problem?.description.hasPrefix("The key file \(path) cannot be used: ") == true)
    }
}
