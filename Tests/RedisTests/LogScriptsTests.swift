import RedisFixtures
import TestSupport
import Testing

@testable import Redis

/// The invariants of Open.lua and Publish.lua, on real servers.
@Suite struct LogScriptsTests {
    private func whole(_ server: RedisFixture) throws -> LogDriver {
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        return LogDriver(driver, server)
    }

    @Test func entriesAreDenseAndChained() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        let opened = try log.open(leastEpoch: 5000)
        #expect(opened == LogOpening(head: LogEntryID(epoch: 5000, offset: -1), tag: 0, older: []))
        for number: UInt64 in 0..<20 {
            #expect(try log.publish([UInt8(number)], opened, entryTag: 0xF0 + number) == .integer(Int64(number)))
        }
        let entries = try log.read(after: opened)
        #expect(entries.map(\.id.offset) == Array(0..<20))
        #expect(entries.map(\.tag) == (0..<20).map { 0xF0 + $0 })
        #expect(entries.map(\.tagBefore) == [0] + (0..<19).map { 0xF0 + $0 })
        #expect(try log.read(after: LogEntryID(epoch: 5000, offset: 17)).map(\.batch) == [[18], [19]])
        #expect(try log.read(after: opened, through: LogEntryID(epoch: 5000, offset: 1)).count == 2)
        #expect(try log.read(after: opened, count: 3).count == 3)
        // Whoever opens now goes on in the same epoch, whatever its clock says.
        let again = try log.open(leastEpoch: 9000)
        #expect(again == LogOpening(head: LogEntryID(epoch: 5000, offset: 19), tag: 0xF0 + 19, older: []))
    }

    /// Whatever the sizes of entries are, they come in answers of some megabytes, and all of them.
    @Test func theLogIsReadInPieces() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        let opened = try log.open()
        let sizes =
            [3 << 20, 10, 4 << 20, 4 << 20] + [Int](repeating: 200_000, count: 13) + [Int](repeating: 1, count: 30)
        for size in sizes { _ = try log.publish([UInt8](repeating: 5, count: size), opened) }
        var place = opened.head
        var read: [Int] = []
        var pieces: [LogPiece] = []
        while pieces.last?.isAtEnd != true {
            let piece = try log.piece(after: place)
            #expect(piece.entries.reduce(0) { $0 + $1.batch.count } < 5 << 20)
            try #require(!piece.entries.isEmpty || piece.isAtEnd)
            read += piece.entries.map(\.batch.count)
            place = piece.entries.last?.id ?? place
            pieces.append(piece)
        }
        #expect(read == sizes)
        #expect(pieces.count < 10)
        #expect(try log.piece(after: place) == LogPiece(entries: [], isAtEnd: true))
        for count in 1...9 {
            let piece = try log.piece(after: LogEntryID(epoch: place.epoch, offset: place.offset - 6), count: count)
            #expect(piece.entries.count == min(count, 6))
            #expect(piece.isAtEnd == (count >= 6))
        }
    }

    @Test func theHeadIsReadWithoutWriting() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        #expect(try log.head() == nil)
        let opened = try log.open(leastEpoch: 5000)
        #expect(try log.head() == opened)
        _ = try log.publish([1], opened, entryTag: 0xAB)
        #expect(try log.head() == LogOpening(head: LogEntryID(epoch: 5000, offset: 0), tag: 0xAB, older: []))
        _ = try server.session().runCommand("SET", .text(log.keys.head), "nonsense")
        #expect(throws: LogRefusal.self) { try log.head() }
    }

    @Test func answersOfAnyFormAreReadOrRefused() throws {
        let corpus = [
            "*2\r\n:1\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*6\r\n$1\r\np\r\n$1\r\n0\r\n$1\r\nt\r\n$1\r\n7\r\n$1\r\nb\r\n$2\r\nxy\r\n",
            "*4\r\n$4\r\n1000\r\n$2\r\n-1\r\n$1\r\n0\r\n$5\r\n999-1\r\n", "$17\r\n1000 5 abc f 9-2 1-0\r\n", ":5\r\n",
            "-EPOCH 5 is the epoch of the log\r\n",
        ].map { Array($0.utf8) }
        let tokens = ["*", "$", ":", "\r\n", "-", "-1", "18446744073709551616", "9223372036854775808", " ", "0", "f"]
            .map { Array($0.utf8) }
        var mutator = Mutator(random: SeededGenerator(seed: 21), tokens: tokens)
        var (read, refused) = (0, 0)
        func count(_ body: () throws -> Void) { do { try body(); read += 1 } catch { refused += 1 } }
        for round in 0..<20_000 {
            let reader = ReplyReader()
            let bytes = mutator.mutate(corpus[round % corpus.count], with: corpus)
            var value: RedisValue?
            count {
                try bytes.withUnsafeBytes { try reader.feedBytes($0) }
                value = try reader.nextReply()
            }
            guard let value else { continue }
            count { _ = try LogScripts.parseOpening(value) }
            count { _ = try LogScripts.parsePiece(value) }
            count { _ = try LogScripts.parseHead(value) }
            count { _ = try LogScripts.parsePublished(value) }
        }
        #expect(read > 10_000)
        #expect(refused > 10_000)
    }

    @Test func whatIsPublishedIsTheEntry() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        let opened = try log.open(leastEpoch: 5000)
        let batch: [UInt8] = [0, 10, 13, 32, 255]
        _ = try log.publish([1], opened, entryTag: .max)
        #expect(log.driver.link.publishPing(tag: 1, at: .now))
        try log.driver.expect("pong") { $0 == .pong(tag: 1) ? () : nil }
        _ = try log.publish(batch, opened, entryTag: 0xAB)
        #expect(log.driver.link.publishPing(tag: 2, at: .now))
        try log.driver.expect("pong") { $0 == .pong(tag: 2) ? () : nil }
        let published = log.driver.events.compactMap { if case .message(_, let bytes) = $0 { bytes } else { nil } }
        #expect(
            published == [
                Array("5000 0 0 18446744073709551615\n".utf8) + [1],
                Array("5000 1 18446744073709551615 171\n".utf8) + batch,
            ])
    }

    @Test func theLogIsTrimmed() throws {
        let server = try RedisFixture(["stream-node-max-entries 10"])
        let log = try whole(server)
        let opened = try log.open()
        for _ in 0..<100 { _ = try log.publish([1], opened, length: 20) }
        let kept = try log.read(after: opened)
        #expect((20...40).contains(kept.count))
        #expect(kept.last?.id.offset == 99)
    }

    @Test(arguments: [false, true]) func aRestartIsANewEpoch(isKept: Bool) throws {
        let server = try RedisFixture(isKept ? ["appendonly yes"] : [])
        let log = try whole(server)
        let opened = try log.open(leastEpoch: 5000)
        for number: UInt8 in 0..<3 { _ = try log.publish([number], opened) }
        server.kill()
        try log.driver.falls(.cut)
        try server.start()
        try log.driver.becomesWhole()
        let next = try log.open(leastEpoch: 4000)
        if isKept {
            #expect(next.head == LogEntryID(epoch: 5001, offset: -1))
            #expect(next.older == [LogEntryID(epoch: 5000, offset: 2)])
            #expect(try log.read(after: opened).map(\.batch) == [[0], [1], [2]])
        } else {
            #expect(next.head == LogEntryID(epoch: 4000, offset: -1))
            #expect(next.older == [])
        }
        #expect(try log.publish([9], next) == .integer(0))
    }

    @Test func anotherEpochIsRefusedAndNothingIsWritten() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        let opened = try log.open()
        _ = try log.publish([1], opened)
        _ = try server.session().runCommand("FLUSHALL")
        #expect(try log.publish([2], opened) == .error("EPOCH none is the epoch of the log"))
        #expect(try server.session().runCommand("DBSIZE") == .integer(0))
        let next = try log.open(leastEpoch: opened.head.epoch + 1)
        #expect(next.head == LogEntryID(epoch: opened.head.epoch + 1, offset: -1))
        #expect(throws: LogRefusal.otherEpoch) { try LogScripts.parsePublished(try log.publish([3], opened)) }
        #expect(try log.read(after: next).isEmpty)
        #expect(try log.open(leastEpoch: 1) == next)
        let told = log.driver.events.filter { if case .message = $0 { true } else { false } }
        #expect(told.count <= 1)
    }

    /// The head may be evicted, or deleted by hand, while the log stays.
    @Test func aHeadThatIsGone() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        let opened = try log.open(leastEpoch: 8000)
        _ = try log.publish([1], opened)
        _ = try server.session().runCommand("DEL", .text(log.keys.head))
        let next = try log.open(leastEpoch: 10)
        #expect(next.head == LogEntryID(epoch: 8001, offset: -1))
        #expect(next.older == [LogEntryID(epoch: 8000, offset: 0)])
        #expect(try log.publish([2], next) == .integer(0))
        #expect(try log.read(after: opened).map(\.batch) == [[1], [2]])
    }

    @Test func nonsenseBelowTheKeys() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        _ = try server.session().runCommand("SET", .text(log.keys.head), "nonsense")
        let opened = try log.open(leastEpoch: 10)
        #expect(opened.head == LogEntryID(epoch: 10, offset: -1))
        _ = try server.session().runCommand("XADD", .text(log.keys.log), "11-0", "k", "v")
        #expect(try log.read(after: opened).map(\.batch) == [[]], "it has its place, and nothing in it")
        _ = try server.session().runCommand("DEL", .text(log.keys.log))
        _ = try server.session().runCommand("SET", .text(log.keys.log), "nonsense")
        #expect(throws: LogRefusal.otherEpoch) { try LogScripts.parsePublished(try log.publish([1], opened)) }
        let again = try log.open(leastEpoch: 10)
        #expect(try log.publish([1], again) == .integer(0))
    }

    /// A stream remembers the greatest id that it ever had.
    @Test(arguments: ["18446744073709551615-18446744073709551615", "18446744073709551614-5", "6000-7"], [false, true])
    func idsBeyondAllThatHubsWrite(_ id: String, isRemoved: Bool) throws {
        let server = try RedisFixture()
        let log = try whole(server)
        var opened = try log.open(leastEpoch: 5000)
        #expect(try log.publish([1], opened) == .integer(0))
        let session = try server.session()
        _ = try session.runCommand("XADD", .text(log.keys.log), .text(id), "k", "v")
        // XDEL is no right of hubs: trimming removes it as well.
        if isRemoved { _ = try session.runCommand("XTRIM", .text(log.keys.log), "MAXLEN", "0") }
        var attempts = 0
        while try log.publish([2], opened) != .integer(0) {
            attempts += 1
            try #require(attempts < 4, "it goes on like that")
            opened = try log.open(leastEpoch: opened.head.epoch + 1)
        }
        #expect(try log.read(after: opened).map(\.batch) == [[2]])
    }

    /// Keys of another type than hubs write are somebody else's: the next opening is one of a new epoch.
    @Test(arguments: ["RPUSH", "SADD", "SET"]) func keysOfOtherTypesAreReplaced(_ command: String) throws {
        let server = try RedisFixture()
        let log = try whole(server)
        var opened = try log.open(leastEpoch: 5000)
        for key in [log.keys.head, log.keys.log] {
            #expect(try log.publish([1], opened) == .integer(0))
            let session = try server.session()
            _ = try session.runCommand("DEL", .text(key))
            _ = try session.runCommand(.text(command), .text(key), "nonsense")
            let next = try log.open(leastEpoch: 5000)
            #expect(next.head.epoch > opened.head.epoch && next.head.offset == -1)
            opened = next
        }
        #expect(try log.publish([2], opened) == .integer(0))
        #expect(try log.read(after: opened).map(\.batch) == [[2]])
    }

    /// A lease of another type, or that is no number, is removed; one that a hub took meanwhile stays.
    @Test func onlyForeignLeasesAreRemoved() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        let session = try server.session()
        let key = log.keys.lease(of: "a")
        #expect(try log.removeForeignLease(of: "a") == .integer(0))
        for lease in ["0", "5", "9999999999999999999", "18446744073709551615"] {
            _ = try session.runCommand("SET", .text(key), .text(lease), "PX", 60_000)
            let read = try log.driver.reply(to: "GET", .text(key))
            #expect(!LogScripts.isForeignLease(read))
            #expect(try log.removeForeignLease(of: "a") == .integer(0))
            #expect(try session.runCommand("GET", .text(key)) == .bytes(Array(lease.utf8)))
        }
        for lease in ["", "x", "-1", "5 5", "1e3", "18446744073709551616", "5\u{0}"] {
            _ = try session.runCommand("SET", .text(key), .text(lease))
            let read = try log.driver.reply(to: "GET", .text(key))
            #expect(LogScripts.isForeignLease(read))
            #expect(try log.removeForeignLease(of: "a") == .integer(1))
            #expect(try session.runCommand("EXISTS", .text(key)) == .integer(0))
        }
        for command in ["RPUSH", "SADD"] {
            _ = try session.runCommand(.text(command), .text(key), "5")
            let read = try log.driver.reply(to: "GET", .text(key))
            #expect(LogScripts.isForeignLease(read))
            #expect(try log.removeForeignLease(of: "a") == .integer(1))
            #expect(try session.runCommand("EXISTS", .text(key)) == .integer(0))
        }
    }

    @Test func errorsOfRedisSayNothingAboutALease() {
        for text in ["BUSY a script runs", "LOADING the data set", "NOPERM no permission", "ERR what"] {
            #expect(!LogScripts.isForeignLease(.error(text)))
        }
        #expect(!LogScripts.isForeignLease(.null))
    }

    /// Heads of epochs are kept, 16 of them, also of those without entries.
    @Test func olderHeads() throws {
        let server = try RedisFixture(["appendonly yes"])
        let log = try whole(server)
        var expected: [LogEntryID] = []
        for round in 0..<20 {
            let opened = try log.open(leastEpoch: 1)
            #expect(opened.older == Array(expected.prefix(16)))
            let hasEntry = round % 4 != 3
            if hasEntry { _ = try log.publish([1], opened) }
            expected.insert(LogEntryID(epoch: opened.head.epoch, offset: hasEntry ? 0 : -1), at: 0)
            // A new life for the log, without the time that a restart takes.
            let head = try server.session().runCommand("GET", .text(log.keys.head)).text ?? ""
            var parts = head.split(separator: " ").map(String.init)
            parts[2] = "another"
            _ = try server.session().runCommand("SET", .text(log.keys.head), .text(parts.joined(separator: " ")))
        }
        #expect(expected.count == 20)
    }

    /// A replica that lacks the tail becomes the primary: its log goes on in a new epoch, from the head that it has.
    @Test func aPromotedReplica() throws {
        let primary = try RedisFixture()
        let replica = try RedisFixture()
        let proxy = try TestProxy(to: primary.port)
        defer { proxy.stop() }
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: "127.0.0.1", port: proxy.port))))
        try driver.becomesWhole()
        let log = LogDriver(driver)
        try replica.follow(primary)
        let opened = try log.open(leastEpoch: 5000)
        for number: UInt8 in 0..<3 { _ = try log.publish([number], opened) }
        try eventuallyOnRedis("the replica has three") {
            try replica.session().runCommand("XLEN", .text(log.keys.log)) == .integer(3)
        }
        // The replica is cut off, and the primary goes on alone.
        _ = try replica.session().runCommand("REPLICAOF", "127.0.0.1", .integer(Int64(TestPort.claim())))
        for number: UInt8 in 3..<6 { #expect(try log.publish([number], opened) == .integer(Int64(number))) }
        primary.kill()
        try replica.promote()
        proxy.lead(to: replica.port)
        try driver.falls(.cut)
        try driver.becomesWhole()
        let next = try log.open(leastEpoch: 1)
        #expect(next.head == LogEntryID(epoch: 5001, offset: -1))
        #expect(next.older == [LogEntryID(epoch: 5000, offset: 2)])
        #expect(try log.publish([9], next) == .integer(0))
        #expect(try log.read(after: opened).map(\.batch) == [[0], [1], [2], [9]])
    }

    private func set(_ key: String, _ value: String, _ log: LogDriver) throws {
        try #require(log.driver.link.queueCommand(["SET", .text(key), .text(value)], tag: 90, at: .now))
        _ = try log.driver.reply(90)
    }

    /// A head that somebody else wrote counts as gone: another epoch begins, and hubs are there again.
    @Test(arguments: [
        "5000 9223372036854775807 OWNER 7", "5000 -2 OWNER 7", "5000 1099511627777 OWNER 7",
        "18446744073709551615 3 OWNER 7", "9007199254740993 3 OWNER 7", "5000 3 OWNER ff",
        "5000 3 OWNER 99999999999999999999",
        "5000 3 OWNER 7 5-9223372036854775807", "5000 3 OWNER 7 x-1", "5000 3 OWNER 7 18446744073709551615-1",
        "5000 3 OWNER 7" + String(repeating: " 1-1", count: 17), "garbage", "",
    ])
    func aDamagedHeadCountsAsGone(_ damaged: String) throws {
        let server = try RedisFixture()
        let log = try whole(server)
        let opened = try log.open(leastEpoch: 5000)
        _ = try log.publish([1], opened)
        try #require(log.driver.link.queueCommand(["GET", .text(log.keys.head)], tag: 91, at: .now))
        let owner = try #require(try log.driver.reply(91).text).split(separator: " ")[2]
        try set(log.keys.head, damaged.replacing("OWNER", with: owner), log)
        // Whoever has it open writes nothing more, where the head's place says what is wrong.
        _ = try log.publish([2], opened)
        let again = try log.open(leastEpoch: 5000)
        #expect(again.head.epoch > 5000 && again.head.epoch < 1 << 52 && again.head.offset == -1)
        #expect(try log.publish([3], again) == .integer(0))
        #expect(try log.head()?.head == LogEntryID(epoch: again.head.epoch, offset: 0))
        #expect(
            try log.open()
                == LogOpening(head: LogEntryID(epoch: again.head.epoch, offset: 0), tag: 7, older: again.older))
    }

    /// A log that ends where nothing can follow, and one that somebody else wrote in.
    @Test func entriesThatHubsDidNotWriteArePassed() throws {
        let server = try RedisFixture()
        let log = try whole(server)
        let opened = try log.open(leastEpoch: 5000)
        _ = try log.publish([1], opened)
        func add(_ id: String, _ fields: [RedisArgument]) throws {
            try #require(
                log.driver.link.queueCommand(["XADD", .text(log.keys.log), .text(id)] + fields, tag: 92, at: .now))
            _ = try log.driver.reply(92)
        }
        try add("5000-1", ["what", "ever"])
        try add("5000-9223372036854775807", ["p", "1", "t", "2", "b", "x"])
        let piece = try log.piece(after: opened.head)
        #expect(piece.entries.map(\.batch) == [[1], []] && piece.entries.map(\.id.offset) == [0, 1])
        #expect(try log.piece(after: LogEntryID(epoch: 5000, offset: 1)) == LogPiece(entries: [], isAtEnd: true))
        // The head is before the end of the log: it goes.
        #expect(throws: LogRefusal.otherEpoch) { try LogScripts.parsePublished(try log.publish([2], opened)) }
        let again = try log.open(leastEpoch: 5000)
        #expect(again.head == LogEntryID(epoch: 5001, offset: -1))
        try add("18446744073709551615-18446744073709551615", ["p", "1", "t", "2", "b", "x"])
        try set(log.keys.head, "gone", log)
        let last = try log.open(leastEpoch: 6000)
        #expect(last.head == LogEntryID(epoch: 6000, offset: -1))
        #expect(try log.publish([3], last) == .integer(0))
    }
}
