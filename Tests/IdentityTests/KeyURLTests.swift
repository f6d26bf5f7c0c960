import Foundation
import Glibc
import Identity
import Synchronization
import Testing
import Wire

@Suite(.serialized) struct KeyURLTests {
    private let old = SigningKey(for: .es256)
    private let new = SigningKey(for: .edDSA)

    private func settings(_ url: String, look: Duration = .milliseconds(10)) -> KeySettings {
        var settings = KeySettings()
        settings.url = url
        settings.intervals.look = look
        settings.intervals.refresh = .seconds(3600)
        settings.intervals.retry = .milliseconds(20)
        settings.intervals.pause = .milliseconds(20)
        return settings
    }

    @Test("the keys are there when the hub starts, and fetched again when a token names another")
    func rotation() async throws {
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))))
        defer { server.stop() }
        let (logger, _) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(server.url), logger: logger)
        let (oldToken, newToken) = (old.token(.es256, kid: "old"), new.token(.edDSA, kid: "new"))
        #expect(refresher.refusal(oldToken) == nil)
        #expect(server.requests == 1)
        server.answer(.body(keySet(old.jwk(kid: "old"), new.jwk(kid: "new"))))
        #expect(refresher.refusal(newToken) == .keyUnknown, "refused at once, never waited for")
        try await eventually("the new key") { refresher.refusal(newToken) == nil }
        #expect(refresher.refusal(oldToken) == nil)
    }

    @Test("fetched every so often, too")
    func refreshes() async throws {
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))))
        defer { server.stop() }
        let (logger, _) = LogRecorder.open()
        var settings = settings(server.url)
        settings.intervals.refresh = .milliseconds(20)
        let refresher = try await KeyRefresher.open(settings, logger: logger)
        let claims = try refresher.verifyToken(old.token(.es256, kid: "old"), at: testTime)
        let token = old.token(.es256, kid: "old")
        let known = try refresher.verifyToken(token, at: testTime)
        try await eventually("more fetches") { server.requests >= 4 }
        #expect(
            try refresher.verifyToken(token, at: testTime) === known,
            "the same keys again make nobody be verified again")
        #expect(claims.role == "anon")
        server.answer(.body(keySet(new.jwk(kid: "new"))))
        try await eventually("the old key is gone") { refresher.refusal(token) == .keyUnknown }
    }

    @Test("however many bad tokens come, the URL is asked once in a while")
    func rateLimit() async throws {
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))))
        defer { server.stop() }
        let (logger, _) = LogRecorder.open()
        var settings = settings(server.url, look: .milliseconds(1))
        settings.intervals.pause = .milliseconds(300)
        let refresher = try await KeyRefresher.open(settings, logger: logger)
        let tokens = (0..<300).map { new.token(.edDSA, kid: "k\($0)") }
        let began = ContinuousClock.now
        for _ in 0..<4 {
            let asked = server.requests
            for token in tokens { #expect(refresher.refusal(token) == .keyUnknown) }
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
        let (logger, lines) = LogRecorder.open()
        var settings = settings(server.url.replacing("http://", with: "http://me:s3cret@") + "?key=s3cret")
        settings.intervals.refresh = .milliseconds(20)
        let refresher = try await KeyRefresher.open(settings, logger: logger)
        server.answer(answer)
        func complaints() -> [String] { lines.all.filter { $0.hasPrefix("warning") } }
        try await eventually("a complaint") { !complaints().isEmpty }
        let asked = server.requests
        try await eventually("it keeps trying") { server.requests > asked + 2 }
        #expect(refresher.refusal(old.token(.es256, kid: "old")) == nil)
        #expect(complaints().count == 1, "\(lines.all)")
        #expect(!lines.all.contains { $0.contains("s3cret") }, "\(lines.all)")
        server.answer(.body(keySet(new.jwk(kid: "new"))))
        let token = new.token(.edDSA, kid: "new")
        try await eventually("good again") { refresher.refusal(token) == nil }
    }

    @Test("an empty set is an answer: there are no such keys (any more)")
    func empty() async throws {
        let server = KeyServer(.body("{\"keys\":[]}"))
        defer { server.stop() }
        let (logger, lines) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(server.url), logger: logger)
        #expect(refresher.refusal(old.token(.es256, kid: "old")) == .keyUnknown)
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
        let (logger, _) = LogRecorder.open()
        let refresher = try await KeyRefresher.open(settings(server.url), logger: logger)
        #expect(refresher.refusal(old.token(.es256, kid: "old")) == nil)
    }

    @Test("a URL that cannot be reached at the start is no error; asymmetric tokens are refused until it can")
    func comesLater() async throws {
        let before = KeyServer(.silence)
        before.stop()
        let (logger, lines) = LogRecorder.open()
        var settings = settings("http://127.0.0.1:\(before.port)/keys")
        settings.secrets = [TokenForge.secret]
        let refresher = try await KeyRefresher.open(settings, logger: logger)
        #expect(lines.all.contains { $0.hasPrefix("warning") && $0.contains("nothing accepts connections there") })
        let token = old.token(.es256, kid: "old")
        #expect(refresher.refusal(token) == .keyUnknown)
        #expect(refresher.refusal(TokenForge().sign()) == nil, "the secret needs no URL")
        let server = KeyServer(.body(keySet(old.jwk(kid: "old"))), port: before.port)
        defer { server.stop() }
        try await eventually("the key") { refresher.refusal(token) == nil }
    }

    @Test("what `roost doctor` says")
    func examined() async throws {
        let server = KeyServer(.body(keySet(old.jwk(), new.jwk())))
        defer { server.stop() }
        func outcome() async -> [Result<Int, KeyProblem>] {
            await settings(server.url).examineSources().map(\.outcome)
        }
        #expect(await outcome() == [.success(2)])
        server.answer(.status(503))
        #expect(
            await outcome() == [
                .failure(KeyProblem("The keys at jwks.url cannot be fetched: the answer's status is 503, not 200"))
            ])
    }
}

/// A web server of a few lines that says what a test wants, on 127.0.0.1 and a port of its own.
final class KeyServer: Sendable {
    enum Answer: Sendable {
        case body(String)
        case status(Int)
        case redirect(String)
        /// Accepts, and says nothing until the server is gone.
        case silence
        case noHTTP
        /// A body of so many of them.
        case spaces(Int)
    }

    let port: UInt16
    private let listener: Int32
    private let state: Mutex<(answer: Answer, requests: [String], silent: [Int32])>

    var url: String { "http://127.0.0.1:\(port)/keys" }
    var requests: Int { state.withLock { $0.requests.count } }

    init(_ answer: Answer, port wanted: UInt16 = 0) {
        state = Mutex((answer, [], []))
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var on: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = wanted.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(isBound, "the test's web server has no port")
        port = UInt16(bigEndian: address.sin_port)
        var thread = pthread_t()
        let me = Unmanaged.passRetained(self).toOpaque()
        pthread_create(
            &thread, nil,
            {
                Unmanaged<KeyServer>.fromOpaque($0!).takeRetainedValue().serve(); return nil
            }, me)
        pthread_detach(thread)
    }

    func answer(_ answer: Answer) { state.withLock { $0.answer = answer } }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for socket in state.withLock({ $0.silent }) { close(socket) }
    }

    private func serve() {
        while true {
            let socket = accept(listener, nil, nil)
            guard socket >= 0 else { break }
            let answer = state.withLock { state in
                state.requests.append(Self.request(socket))
                return state.answer
            }
            if case .silence = answer {
                state.withLock { $0.silent.append(socket) }
                continue
            }
            let text = Array(Self.text(answer).utf8)
            _ = send(socket, text, text.count, Int32(MSG_NOSIGNAL))
            close(socket)
        }
        close(listener)
    }

    private static func request(_ socket: Int32) -> String {
        var bytes = [UInt8](repeating: 0, count: 8192)
        var length = 0
        while !bytes.prefix(length).ends(with: "\r\n\r\n".utf8), length < bytes.count {
            let count = bytes[length...].withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { break }
            length += count
        }
        return String(decoding: bytes.prefix(length), as: UTF8.self)
    }

    private static func text(_ answer: Answer) -> String {
        switch answer {
        case .body(let body):
            "HTTP/1.1 200 OK\r\ncontent-length: \(body.utf8.count)\r\nconnection: close\r\n\r\n\(body)"
        case .spaces(let count): text(.body(String(repeating: " ", count: count)))
        case .status(let status): "HTTP/1.1 \(status) Oh\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        case .redirect(let url):
            "HTTP/1.1 302 Found\r\nlocation: \(url)\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        case .silence: ""
        case .noHTTP: "what?\r\n"
        }
    }
}

extension Collection<UInt8> where Self: BidirectionalCollection {
    fileprivate func ends(with end: some BidirectionalCollection<UInt8>) -> Bool {
        reversed().starts(with: end.reversed())
    }
}
