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
        let (logger, _) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(old), logger: logger)
        let (first, second) = (try token(old), try token(new))
        #expect(keeper.refusal(first) == nil)
        #expect(keeper.refusal(second) == .signatureInvalid)
        try await keeper.adopt(settings(new, old))
        #expect(keeper.refusal(first) == nil)
        #expect(keeper.refusal(second) == nil)
        try await keeper.adopt(settings(new))
        #expect(keeper.refusal(first) == .signatureInvalid)
        #expect(keeper.refusal(second) == nil)
    }

    @Test("what a token must claim changes with the keys")
    func rules() async throws {
        let (logger, _) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(old), logger: logger)
        let (ours, others) = (try token(old, issuer: "us"), try token(old, issuer: "them"))
        #expect(keeper.refusal(others) == nil)
        try await keeper.adopt(settings(old, issuers: ["us"]))
        #expect(keeper.refusal(ours) == nil)
        #expect(keeper.refusal(others) == .issuerRefused)
        try await keeper.adopt(settings(old))
        #expect(keeper.refusal(others) == nil)
    }

    @Test("a file that cannot be used changes nothing; one that can is watched from then on")
    func files() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "roost-keys-\(UUID().uuidString).json").path
        let (logger, _) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(old), logger: logger)
        let inSecret = try token(old)
        var withFile = settings()
        withFile.file = path
        withFile.rhythm.look = .milliseconds(10)
        let asked = withFile
        await #expect(throws: KeyProblem.self) { try await keeper.adopt(asked) }
        #expect(keeper.refusal(inSecret) == nil, "all is as it was")
        let (first, second) = (SigningKey(for: .es256), SigningKey(for: .es256))
        try keySet(first.jwk(kid: "1")).write(toFile: path, atomically: true, encoding: .utf8)
        defer {
            do { try FileManager.default.removeItem(atPath: path) } catch { print("cannot remove \(path): \(error)") }
        }
        try await keeper.adopt(asked)
        #expect(keeper.refusal(first.token(.es256, kid: "1")) == nil)
        #expect(keeper.refusal(inSecret) != nil)
        try keySet(second.jwk(kid: "2")).write(toFile: path, atomically: true, encoding: .utf8)
        let changed = second.token(.es256, kid: "2")
        try await eventually("the changed file") { keeper.refusal(changed) == nil }
    }

    @Test("a URL that does not answer at a reload loses none of its keys; another URL's are not taken for them")
    func urls() async throws {
        let key = SigningKey(for: .es256)
        let server = KeyServer(.body(keySet(key.jwk(kid: "k"))))
        defer { server.stop() }
        var withURL = settings()
        withURL.url = server.url
        withURL.rhythm.look = .seconds(3600)
        let (logger, _) = LogBook.open()
        let keeper = try await KeyKeeper.open(withURL, logger: logger)
        let token = key.token(.es256, kid: "k")
        #expect(keeper.refusal(token) == nil)
        server.answer(.status(500))
        withURL.secrets = [old]
        try await keeper.adopt(withURL)
        #expect(keeper.refusal(token) == nil)
        #expect(keeper.refusal(try self.token(old)) == nil, "and it was a reload")
        withURL.url = server.url + "/elsewhere"
        try await keeper.adopt(withURL)
        #expect(keeper.refusal(token) == .keyUnknown)
    }
}
