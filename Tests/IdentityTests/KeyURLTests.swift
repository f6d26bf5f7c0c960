import Foundation
import Identity
import Testing
import Wire

@Suite(.serialized) struct KeyURLTests {
    private let old = SigningKey(for: .es256)
    private let new = SigningKey(for: .edDSA)

    private func settings(_ url: String, look: Duration = .milliseconds(10)) -> KeySettings {
        var settings = KeySettings()
        settings.url = url
        settings.rhythm.look = look
        settings.rhythm.refresh = .seconds(3600)
        settings.rhythm.retry = .milliseconds(20)
        settings.rhythm.pause = .milliseconds(20)
        return settings
    }

    @Test("the keys are there when the hub starts, and fetched again when a token names another")
    func rotation() async throws {
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))))
        defer { server.stop() }
        let (logger, _) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(server.url), logger: logger)
        let (oldToken, newToken) = (old.token(.es256, kid: "old"), new.token(.edDSA, kid: "new"))
        #expect(keeper.refusal(oldToken) == nil)
        #expect(server.requests == 1)
        server.answer(.body(keySet(old.jwk(kid: "old"), new.jwk(kid: "new"))))
        #expect(keeper.refusal(newToken) == .keyUnknown, "refused at once, never waited for")
        try await eventually("the new key") { keeper.refusal(newToken) == nil }
        #expect(keeper.refusal(oldToken) == nil)
    }

    @Test("fetched every so often, too")
    func refreshes() async throws {
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))))
        defer { server.stop() }
        let (logger, _) = LogBook.open()
        var settings = settings(server.url)
        settings.rhythm.refresh = .milliseconds(20)
        let keeper = try await KeyKeeper.open(settings, logger: logger)
        let claims = try keeper.verify(old.token(.es256, kid: "old"), at: testTime)
        let token = old.token(.es256, kid: "old")
        let known = try keeper.verify(token, at: testTime)
        try await eventually("more fetches") { server.requests >= 4 }
        #expect(try keeper.verify(token, at: testTime) === known, "the same keys again make nobody be verified again")
        #expect(claims.role == "anon")
        server.answer(.body(keySet(new.jwk(kid: "new"))))
        try await eventually("the old key is gone") { keeper.refusal(token) == .keyUnknown }
    }

    @Test("however many bad tokens come, the URL is asked once in a while")
    func rateLimit() async throws {
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))))
        defer { server.stop() }
        let (logger, _) = LogBook.open()
        var settings = settings(server.url, look: .milliseconds(1))
        settings.rhythm.pause = .milliseconds(300)
        let keeper = try await KeyKeeper.open(settings, logger: logger)
        let tokens = (0..<300).map { new.token(.edDSA, kid: "k\($0)") }
        let began = ContinuousClock.now
        for _ in 0..<4 {
            let asked = server.requests
            for token in tokens { #expect(keeper.refusal(token) == .keyUnknown) }
            try await eventually("another fetch") { server.requests > asked }
        }
        let most = 2 + Int((ContinuousClock.now - began) / .milliseconds(300))
        #expect(server.requests <= most, "\(server.requests) requests for 1,200 tokens")
    }

    @Test(
        "a failure or nonsense leaves the last good keys, and is complained of once",
        arguments: [
            KeyServer.Answer.status(500), .status(404), .body("<html>"), .body("{}"), .body(""), .noHTTP,
            .body(#"{"keys":[{"kty":"AKP"}]}"#), .spaces(300_000),
            .redirect("file:///etc/passwd"), .redirect("ftp://127.0.0.1/"), .redirect("/keys"),
        ])
    func lastGoodKept(_ answer: KeyServer.Answer) async throws {
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))))
        defer { server.stop() }
        let (logger, lines) = LogBook.open()
        var settings = settings(server.url.replacing("http://", with: "http://me:s3cret@") + "?key=s3cret")
        settings.rhythm.refresh = .milliseconds(20)
        let keeper = try await KeyKeeper.open(settings, logger: logger)
        server.answer(answer)
        func complaints() -> [String] { lines.all.filter { $0.hasPrefix("warning") } }
        try await eventually("a complaint") { !complaints().isEmpty }
        let asked = server.requests
        try await eventually("it keeps trying") { server.requests > asked + 2 }
        #expect(keeper.refusal(old.token(.es256, kid: "old")) == nil)
        #expect(complaints().count == 1, "\(lines.all)")
        #expect(!lines.all.contains { $0.contains("s3cret") }, "\(lines.all)")
        server.answer(.body(keySet(new.jwk(kid: "new"))))
        let token = new.token(.edDSA, kid: "new")
        try await eventually("good again") { keeper.refusal(token) == nil }
    }

    @Test("an empty set is an answer: there are no such keys (any more)")
    func empty() async throws {
        let server = KeyServer(.body("{\"keys\":[]}"))
        defer { server.stop() }
        let (logger, lines) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(server.url), logger: logger)
        #expect(keeper.refusal(old.token(.es256, kid: "old")) == .keyUnknown)
        #expect(!lines.all.contains { $0.hasPrefix("warning") })
    }

    @Test("redirects to another place of the web are followed")
    func redirects() async throws {
        let target = KeyServer(.body(keySet(old.jwk(kid: "old"))))
        let server = KeyServer(.redirect(target.url))
        defer {
            target.stop()
            server.stop()
        }
        let (logger, _) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(server.url), logger: logger)
        #expect(keeper.refusal(old.token(.es256, kid: "old")) == nil)
    }

    @Test("a URL that cannot be reached at the start is no error; asymmetric tokens are refused until it can")
    func comesLater() async throws {
        let before = KeyServer(.silence)
        before.stop()
        let (logger, lines) = LogBook.open()
        var settings = settings("http://127.0.0.1:\(before.port)/keys")
        settings.secrets = [TokenForge.secret]
        let keeper = try await KeyKeeper.open(settings, logger: logger)
        #expect(lines.all.contains { $0.hasPrefix("warning") && $0.contains("nothing accepts connections there") })
        let token = old.token(.es256, kid: "old")
        #expect(keeper.refusal(token) == .keyUnknown)
        #expect(keeper.refusal(TokenForge().sign()) == nil, "the secret needs no URL")
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))), port: before.port)
        defer { server.stop() }
        try await eventually("the key") { keeper.refusal(token) == nil }
    }

    @Test("what `roost doctor` says")
    func examined() async throws {
        let server = KeyServer(.body(keySet(old.jwk(), new.jwk())))
        defer { server.stop() }
        func outcome() async -> [Result<Int, KeyProblem>] {
            await KeyKeeper.examine(settings(server.url)).map(\.outcome)
        }
        #expect(await outcome() == [.success(2)])
        server.answer(.status(503))
        #expect(
            await outcome() == [
                .failure(KeyProblem("The keys at jwks.url cannot be had: the answer's status is 503, not 200"))
            ])
    }
}
