import Foundation
import Identity
import Testing
import Wire

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
        settings.rhythm.look = look
        return settings
    }

    @Test("a changed file is read by the clock, and what it no longer has is out")
    func changes() async throws {
        try write(keySet(old.jwk(kid: "old")))
        defer { remove() }
        let (logger, _) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(look: .milliseconds(10)), logger: logger)
        let (oldToken, newToken) = (old.token(.es256, kid: "old"), new.token(.edDSA, kid: "new"))
        #expect(keeper.refusal(oldToken) == nil)
        // Written and not asked for: only the clock can find it.
        try write(keySet(old.jwk(kid: "old"), new.jwk(kid: "new")))
        try await eventually("the new key") { keeper.refusal(newToken) == nil }
        #expect(keeper.refusal(oldToken) == nil)
        try write(keySet(new.jwk(kid: "new")))
        try await eventually("the old key is gone") { keeper.refusal(oldToken) == .keyUnknown }
        #expect(keeper.refusal(newToken) == nil)
    }

    @Test("a token that names a new key makes it look at once")
    func unknownKey() async throws {
        try write(keySet(old.jwk(kid: "old")))
        defer { remove() }
        let (logger, _) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(look: .seconds(3600)), logger: logger)
        try write(keySet(new.jwk(kid: "new")))
        let token = new.token(.edDSA, kid: "new")
        #expect(keeper.refusal(token) == .keyUnknown, "refused at once, never waited for")
        try await eventually("the new key") { keeper.refusal(token) == nil }
    }

    @Test(
        "a file that goes bad leaves the last good keys, and is complained of once",
        arguments: ["", "{", "{\"keys\":[]}"])
    func goesBad(_ text: String) async throws {
        try write(keySet(old.jwk(kid: "old")))
        defer { remove() }
        let (logger, lines) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(look: .milliseconds(5)), logger: logger)
        try write(text)
        func complaints() -> [String] { lines.all.filter { $0.hasPrefix("warning") } }
        try await eventually("a complaint") { !complaints().isEmpty }
        try write(text + " ")
        try write(keySet(new.jwk(kid: "new")))
        let token = new.token(.edDSA, kid: "new")
        try await eventually("good again") { keeper.refusal(token) == nil }
        #expect(complaints().count == 1)
        #expect(complaints().first?.contains(path) == true)
    }

    @Test("a file that goes away leaves the last good keys")
    func goesAway() async throws {
        try write(keySet(old.jwk(kid: "old")))
        let (logger, lines) = LogBook.open()
        let keeper = try await KeyKeeper.open(settings(look: .milliseconds(5)), logger: logger)
        remove()
        try await eventually("a complaint") { lines.all.contains { $0.contains("no such file") } }
        #expect(keeper.refusal(old.token(.es256, kid: "old")) == nil)
    }

    @Test(
        "at the start a faulty file is an error that names it",
        arguments: [nil, "", "{\"keys\":[]}", "-----BEGIN PUBLIC KEY-----"])
    func faultyAtTheStart(_ text: String?) async throws {
        if let text { try write(text) }
        defer { if text != nil { remove() } }
        let (logger, _) = LogBook.open()
        let settings = settings(look: .seconds(3600))
        let problem = await #expect(throws: KeyProblem.self) { _ = try await KeyKeeper.open(settings, logger: logger) }
        #expect(problem?.description.hasPrefix("The key file \(path) cannot be used: ") == true)
    }
}
