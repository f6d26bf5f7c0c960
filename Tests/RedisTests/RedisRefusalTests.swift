import RedisFixtures
import Testing

@testable import Redis

/// What a server refuses is told in a sentence that says what to do.
@Suite struct RedisRefusalTests {
    private func address(_ server: RedisFixture, _ user: String?, _ password: String?) -> RedisAddress {
        var address = server.address
        address.credentials = .init(user: user, password: password)
        return address
    }

    @Test func passwords() throws {
        let server = try RedisFixture(["requirepass right"])
        #expect(
            try LinkDriver(server.address).falls()
                == RedisFailure(.password, "Redis wants a password: write redis://:password@host"))
        #expect(
            try LinkDriver(address(server, nil, "wrong")).falls()
                == RedisFailure(.password, "Redis refuses the user or the password"))
        try LinkDriver(address(server, nil, "right")).becomesWhole()
        let open = try RedisFixture()
        #expect(try LinkDriver(address(open, nil, "some")).falls().kind == .password)
    }

    @Test func theUserOfTheManualMayDoAllThatIsNeededAndNoMore() throws {
        let server = try RedisFixture(["user roost on >secret \(RedisRights.acl)"])
        let driver = LinkDriver(address(server, "roost", "secret"))
        try driver.becomesWhole()
        let log = LogDriver(driver)
        let opened = try log.open()
        #expect(try log.publish([1, 2, 3], opened) == .integer(0))
        #expect(try log.read(after: opened).map(\.batch) == [[1, 2, 3]])
        let streams = StreamLogDriver(driver)
        let change = SharedStreamChange(.append, name: "a", id: 1, before: .absent, bytes: [1, 2])
        let removal = SharedStreamChange(.remove, name: "a", id: 1, before: .length(2))
        let written = try streams.write([change], try streams.open().epoch)
        #expect(StreamScripts.parseOutcomes(written) == [.done])
        #expect(try driver.reply(to: "HGETALL", "{roost:test}:s").elements?.count == 2)
        #expect(try driver.reply(to: "GETRANGE", "{roost:test}:s:1", "0", "0") == .bytes([1]))
        #expect(StreamScripts.parseOutcomes(try streams.write([removal], try streams.open().epoch)) == [.done])
        #expect(try driver.reply(to: "SET", "{roost:test}:l:a", "boot", "NX", "PX", "3000") == .status("OK"))
        #expect(try driver.reply(to: "MGET", "{roost:test}:l:a", "{roost:test}:l:b").elements?.count == 2)
        #expect(try driver.reply(to: "DEL", "{roost:test}:l:a") == .integer(1))
        #expect(try driver.reply(to: "PUBSUB", "NUMSUB", "{roost:test}:c").elements?.last == .integer(1))
        // Last, as each of them ends the link; a session goes on.
        let session = try server.session(.init(user: "roost", password: "secret"))
        guard case .error = try session.runCommand("CONFIG", "GET", "*") else {
            throw RedisFixtureError(description: "allowed")
        }
        #expect(try session.runCommand("PING") == .status("PONG"))
        for command: [RedisArgument] in [
            ["GET", "other"], ["FLUSHALL"], ["PUBLISH", "other", "x"], ["CONFIG", "GET", "*"],
        ] {
            #expect(driver.link.queueCommand(command, tag: 4, at: .now))
            guard case .error(let text) = try driver.reply(4) else {
                throw RedisFixtureError(description: "\(command)")
            }
            #expect(text.hasPrefix("NOPERM"))
            try driver.falls(.rights)
            try driver.becomesWhole()
        }
    }

    @Test(arguments: ["-script", "-subscribe", "-info", "resetchannels"]) func aUserWithTooFewRights(less: String)
        throws
    {
        let server = try RedisFixture(["user roost on >secret \(RedisRights.acl) \(less)"])
        let failure = try LinkDriver(address(server, "roost", "secret")).falls()
        #expect(failure.kind == .rights)
        #expect(failure.description.hasPrefix("Redis does not allow its user what is needed"))
    }

    @Test(arguments: ["-xadd", "-publish", "-get"]) func aUserWhoseScriptsMayNotDoTheirWork(less: String) throws {
        let server = try RedisFixture(["user roost on >secret \(RedisRights.acl) \(less)"])
        let driver = LinkDriver(address(server, "roost", "secret"))
        try driver.becomesWhole()
        let log = LogDriver(driver)
        if less != "-get" { _ = try log.publish([1], try log.open()) } else { _ = try log.opening() }
        try driver.falls(.rights)
    }

    @Test func aServerThatReadsItsData() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        for key in 0..<400 { #expect(driver.link.queueCommand(["SET", .text("key\(key)"), "x"], tag: 1, at: .now)) }
        #expect(try driver.reply(to: "SAVE", tag: 2) == .status("OK"))
        server.kill()
        // A millisecond and more for each key, and clients are looked after meanwhile.
        try server.start(["key-load-delay 3000", "loading-process-events-interval-bytes 1024"], waitsUntilReady: false)
        #expect(try driver.falls(.loading).description == "Redis is reading its data after a start")
        try driver.becomesWhole()
        #expect(try driver.reply(to: "GET", "key399", tag: 3).text == "x")
    }

    @Test func aReplicaTakesNoWrites() throws {
        let primary = try RedisFixture()
        let replica = try RedisFixture()
        try replica.follow(primary)
        let driver = LinkDriver(replica.address)
        try driver.becomesWhole()
        guard case .error(let text) = try LogDriver(driver).opening() else {
            throw RedisFixtureError(description: "a replica opened the log")
        }
        #expect(text == "NOTMASTER this server is a replica")
        try driver.falls(.readOnly)
        try driver.becomesWhole()
        _ = try driver.reply(to: "SET", "k", "x")
        try driver.falls(.readOnly)
    }

    @Test func aServerWithoutReplicasThatWantsSome() throws {
        let server = try RedisFixture(["min-replicas-to-write 1"])
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        _ = try LogDriver(driver).opening()
        #expect(try driver.falls(.replicas).description.contains("min-replicas-to-write"))
    }

    @Test func aServerThatIsFull() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        let log = LogDriver(driver)
        let opened = try log.open()
        _ = try server.session().runCommand("CONFIG", "SET", "maxmemory", "1")
        #expect(try log.open() == opened, "an epoch that goes on opens")
        _ = try log.publish([1], opened)
        #expect(try driver.falls(.memory).description == "Redis is full (maxmemory)")
        _ = try server.session().runCommand("CONFIG", "SET", "maxmemory", "0")
        try driver.becomesWhole()
        #expect(try log.open() == opened, "nothing was written")
    }

    @Test func aServerThatCannotSave() throws {
        let server = try RedisFixture(["save 3600 1", "dbfilename x.rdb"])
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        // What it cannot rename its file to.
        try makeFolder(server.directory + "/x.rdb/y")
        _ = try server.session().runCommand("SET", "k", "x")
        _ = try server.session().runCommand("BGSAVE")
        try eventuallyOnRedis("it failed") { try server.information("persistence")["rdb_last_bgsave_status"] == "err" }
        _ = try driver.reply(to: "SET", "k", "x")
        try driver.falls(.disk)
    }

    @Test func tooManyClients() throws {
        let server = try RedisFixture(["maxclients 4"])
        var sessions: [RedisSession] = []
        var refused = 0
        // More than once: a connection of before may have ended in between.
        while refused < 3 {
            do { sessions.append(try server.session()) } catch { refused += 1 }
            try #require(sessions.count < 10)
        }
        let driver = LinkDriver(server.address)
        #expect(try driver.falls(.refusal).description == "Redis has too many clients (maxclients)")
        sessions = []
        try driver.becomesWhole()
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "$99999999999999999999\r\n", "*2147483647\r\n", ":1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n",
    ])
    func whoeverIsNoRedis(says: String) throws {
        let listener = try TestListener(saying: Array(says.utf8))
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: "127.0.0.1", port: listener.port))))
        #expect(try driver.falls(.protocolError).description.hasPrefix("what answers does not speak Redis' protocol: "))
    }

    @Test func whatAServerSaysStandsInOneLineOfTheLog() throws {
        let text = "-ERR \u{1B}[31mno\u{7F}\u{0}\u{2028}\u{202E}\u{85}" + String(repeating: "x", count: 10_000) + "\r\n"
        let listener = try TestListener(saying: Array(text.utf8))
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: "127.0.0.1", port: listener.port))))
        let description = try driver.falls().description
        #expect(description.hasPrefix("Redis refuses: ERR [31mnoxxx"))
        #expect(description.utf8.count < 250)
    }
}
