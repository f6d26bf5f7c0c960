import Foundation
import RedisFixtures

@testable import Redis

/// The log's scripts on a link, with their answers waited for.
struct LogDriver {
    let driver: LinkDriver
    let keys = LogKeys(cluster: "test")

    /// Kept as long as it is spoken to.
    private let server: RedisFixture?

    init(_ driver: LinkDriver, _ server: RedisFixture? = nil) {
        self.driver = driver
        self.server = server
    }

    func opening(leastEpoch: UInt64 = 1000) throws -> RedisValue {
        guard LogScripts(keys).queueOpening(leastEpoch: leastEpoch, on: driver.link, tag: 1, at: .now) else {
            throw RedisFixtureError(description: "refused")
        }
        return try driver.reply(1)
    }

    func open(leastEpoch: UInt64 = 1000) throws -> LogOpening {
        try LogScripts.parseOpening(try opening(leastEpoch: leastEpoch))
    }

    func publish(_ batch: [UInt8], _ opening: LogOpening, entryTag: UInt64 = 7, length: Int = 1000) throws -> RedisValue
    {
        let scripts = LogScripts(keys)
        guard
            scripts.queuePublishing(
                batch, in: opening.head.epoch, entryTag: entryTag, length: length, on: driver.link, tag: 2, at: .now)
        else { throw RedisFixtureError(description: "refused") }
        return try driver.reply(2)
    }

    func read(after opening: LogOpening, through last: LogEntryID? = nil, count: Int = 1000) throws -> [StoredLogEntry]
    {
        try read(after: opening.head, through: last, count: count)
    }

    func read(after place: LogEntryID, through last: LogEntryID? = nil, count: Int = 1000) throws -> [StoredLogEntry] {
        try piece(after: place, through: last, count: count).entries
    }

    func piece(after place: LogEntryID, through last: LogEntryID? = nil, count: Int = 1000) throws -> LogPiece {
        guard
            LogScripts(keys).queueReading(after: place, through: last, count: count, on: driver.link, tag: 3, at: .now)
        else {
            throw RedisFixtureError(description: "refused")
        }
        return try LogScripts.parsePiece(try driver.reply(3))
    }

    func removeForeignLease(of hub: String) throws -> RedisValue {
        guard LogScripts(keys).removeForeignLease(of: hub, on: driver.link, tag: 5, at: .now) else {
            throw RedisFixtureError(description: "refused")
        }
        return try driver.reply(5)
    }

    func head() throws -> LogOpening? {
        guard LogScripts(keys).readHead(on: driver.link, tag: 4, at: .now) else {
            throw RedisFixtureError(description: "refused")
        }
        return try LogScripts.parseHead(try driver.reply(4))
    }
}

func makeFolder(_ path: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
}
