import TestSupport
import Testing

@testable import Redis

@Suite struct RedisAddressTests {
    @Test func tcp() throws {
        let plain = try RedisAddress("redis://example.org")
        #expect(plain.place == .tcp(.init(host: "example.org", port: 6379)))
        #expect(plain.encryption == nil)
        #expect(plain.credentials == .init())
        let full = try RedisAddress("rediss://me:p%40ss:w%2Ford@example.org:7000/3?ca_file=/etc/a%20b.pem&verify=off")
        #expect(full.place == .tcp(.init(host: "example.org", port: 7000)))
        #expect(full.credentials == .init(user: "me", password: "p@ss:w/ord"))
        #expect(full.database == 3)
        #expect(full.encryption == .init(authorities: "/etc/a b.pem", verifies: false))
        #expect(try RedisAddress("REDIS://:secret@[::1]:7000").place == .tcp(.init(host: "::1", port: 7000)))
        #expect(try RedisAddress("redis://:sec@ret@host").credentials.password == "sec@ret")
        #expect(try RedisAddress("rediss://host").encryption == .init(authorities: nil, verifies: true))
    }

    @Test func unix() throws {
        let address = try RedisAddress("unix:///run/redis/redis.sock?user=me&password=secret&db=2")
        #expect(address.place == .unix("/run/redis/redis.sock"))
        #expect(address.credentials == .init(user: "me", password: "secret"))
        #expect(address.database == 2)
    }

    @Test func sentinel() throws {
        let address = try RedisAddress("redis+sentinel://:pw@one:26380,two,[::1]/main?db=1&sentinel_password=other")
        #expect(
            address.place
                == .sentinel(
                    [
                        .init(host: "one", port: 26380), .init(host: "two", port: 26379),
                        .init(host: "::1", port: 26379),
                    ],
                    name: "main"))
        #expect(address.credentials.password == "pw")
        #expect(address.sentinelCredentials.password == "other")
        #expect(try RedisAddress("rediss+sentinel://one/main").encryption != nil)
    }

    @Test(arguments: [
        ("redis://me:secret@host:7000/2", "redis://me@host:7000/2"), ("rediss://:secret@[::1]", "rediss://[::1]:6379"),
        ("unix:///s?password=secret", "unix:///s"),
        ("redis+sentinel://:secret@a,b:1/n?sentinel_password=secret", "redis+sentinel://a:26379,b:1/n"),
    ])
    func passwordsAreNotShown(text: String, shown: String) throws {
        let address = try RedisAddress(text)
        #expect("\(address)" == shown)
    }

    /// What is written, and what the sentence has to name.
    private static let mistaken = [
        ("host:6379", "no scheme"), ("http://host", "scheme"), ("redis://", "no host"), ("redis://:secret@", "no host"),
        ("redis://host:0", "port"), ("redis://host:secret", "port"), ("redis://host:70000", "port"),
        ("redis://host/secret", "database"), ("redis://host/-1", "database"), ("redis://host/1/2", "two slashes"),
        ("redis://user@host", "without a password"), ("redis://:sec%ret@host", "%25"), ("redis://:%FF@host", "UTF-8"),
        ("redis://:%00@host", "UTF-8"), ("redis://[::1", "bracket"), ("redis://ho st", "character"),
        ("redis://host?secret=1", "option"), ("redis://host?verify=off", "rediss"),
        ("rediss://host?verify=secret", "verify"),
        ("unix://path", "slash"), ("unix:///", "slash"), ("redis+sentinel://a,b", "name"),
        ("redis+sentinel://a,,b/n", "no host"), ("redis://:sec#ret@host", "%23"), ("", "no scheme"),
    ]

    @Test(arguments: mistaken) func mistakes(text: String, says: String) {
        let error = #expect(throws: RedisAddressError.self) { try RedisAddress(text) }
        let sentence = error?.description ?? ""
        #expect(sentence.contains(says))
        #expect(sentence.hasSuffix("."))
        #expect(!sentence.contains("secret"))
    }

    @Test func damagedOnesAreReadOrRefused() {
        let corpus = [
            "rediss://me:p%40ss@example.org:7000/3?ca_file=/etc/a.pem&verify=off", "unix:///s?db=2&password=x",
            "redis+sentinel://:pw@one:26380,two,[::1]/main?db=1",
        ].map { Array($0.utf8) }
        var mutator = Mutator(random: SeededGenerator(seed: 21))
        var read = 0
        for round in 0..<20_000 {
            let text = String(decoding: mutator.mutate(corpus[round % corpus.count], with: corpus), as: UTF8.self)
            do {
                _ = try RedisAddress(text).description
                read += 1
            } catch { #expect(error.description.hasSuffix(".")) }
        }
        #expect(read > 100)
    }
}
