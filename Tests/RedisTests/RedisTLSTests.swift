import RedisFixtures
import Testing

@testable import Redis

@Suite struct RedisTLSTests {
    private static let certificates = Result { try TestCertificates() }

    /// A server whose certificate is for localhost and 127.0.0.1.
    private func server(_ settings: [String] = []) throws -> RedisFixture {
        try RedisFixture(settings, certificates: try Self.certificates.get())
    }

    private func address(
        _ server: RedisFixture, host: String = "127.0.0.1", _ encryption: RedisAddress.Encryption
    ) throws -> RedisAddress {
        var address = RedisAddress(.tcp(.init(host: host, port: try #require(server.tlsPort))))
        address.encryption = encryption
        return address
    }

    @Test(arguments: ["127.0.0.1", "localhost"]) func aCertificateOfOurAuthority(host: String) throws {
        let server = try server()
        let authority = try Self.certificates.get().authority
        let driver = LinkDriver(try address(server, host: host, .init(authorities: authority)))
        try driver.becomesWhole()
        // Records of TLS are 16 KB: more than one of them comes in a read, and what waits inside OpenSSL is read, too.
        let bytes = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 8) }
        #expect(try driver.reply(to: "SET", "k", .bytes(bytes)) == .status("OK"))
        #expect(try driver.reply(to: "GET", "k") == .bytes(bytes))
        for number in 0..<2000 {
            let payload = [UInt8](repeating: UInt8(number % 256), count: number)
            #expect(driver.link.queueCommand(["PUBLISH", "{roost:test}:c", .bytes(payload)], tag: 9, at: .now))
            if number % 200 == 0 { driver.turn(until: .now) }
        }
        var next = 0
        try driver.expect("all messages") {
            if case .message(_, let payload) = $0 {
                #expect(payload == [UInt8](repeating: UInt8(next % 256), count: next))
                next += 1
            }
            return next == 2000 ? () : nil
        }
    }

    @Test func aCertificateOfSomebodyElse() throws {
        let server = try server()
        let other = try TestCertificates()
        let failure = try LinkDriver(try address(server, .init(authorities: other.authority))).falls()
        #expect(failure.kind == .certificate)
        #expect(
            failure.description.contains("self-signed certificate in certificate chain")
                || failure.description.contains("unable to get local issuer certificate"))
        #expect(try LinkDriver(try address(server, .init())).falls().kind == .certificate)
        try LinkDriver(try address(server, .init(verifies: false))).becomesWhole()
    }

    /// The certificate is good, and of another host.
    @Test func aCertificateOfAnotherName() throws {
        let server = try server()
        let authority = try Self.certificates.get().authority
        let failure = try LinkDriver(try address(server, host: "127.0.0.2", .init(authorities: authority))).falls()
        #expect(failure.kind == .refused, "the server listens on 127.0.0.1 alone: \(failure)")
        let proxy = try TestProxy(to: try #require(server.tlsPort), host: "127.0.0.2")
        defer { proxy.stop() }
        var elsewhere = RedisAddress(.tcp(.init(host: "127.0.0.2", port: proxy.port)))
        elsewhere.encryption = .init(authorities: authority)
        #expect(try LinkDriver(elsewhere).falls() == RedisFailure(.certificate, "TLS fails: IP address mismatch"))
    }

    @Test func aFileThatIsNotThere() throws {
        let server = try server()
        let failure = try LinkDriver(try address(server, .init(authorities: "/nowhere/ca.pem"))).falls()
        #expect(failure.kind == .certificate)
        #expect(failure.description.hasPrefix("the certificate authorities cannot be read"))
    }

    @Test func aServerWithoutTLS() throws {
        let server = try server()
        var address = server.address
        address.encryption = .init(verifies: false)
        var timeouts = RedisTimeouts()
        timeouts.silence = .milliseconds(200)
        // It waits for the end of what it takes for a command, or refuses it, as the random bytes of the greeting will have it.
        let failure = try LinkDriver(address, timeouts: timeouts).falls()
        #expect([.certificate, .cut, .silent].contains(failure.kind), "\(failure)")
    }

    /// To whom the handshake is never answered, and a server that ends.
    @Test func cuts() throws {
        let silent = try TestListener(saying: [])
        var address = RedisAddress(.tcp(.init(host: "127.0.0.1", port: silent.port)))
        address.encryption = .init(verifies: false)
        var timeouts = RedisTimeouts()
        timeouts.silence = .milliseconds(200)
        #expect(
            try LinkDriver(address, timeouts: timeouts).falls().description.hasPrefix("TLS was not answered in time"))

        let server = try server()
        let proxy = try TestProxy(to: try #require(server.tlsPort))
        defer { proxy.stop() }
        address.place = .tcp(.init(host: "127.0.0.1", port: proxy.port))
        let driver = LinkDriver(address)
        try driver.becomesWhole()
        proxy.reset()
        try driver.falls(.cut)
        try driver.becomesWhole()
        server.kill()
        try driver.falls(.cut)
        try server.start()
        try driver.becomesWhole()
    }
}
