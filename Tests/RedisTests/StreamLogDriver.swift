import RedisFixtures
import Testing

@testable import Redis

/// The scripts of streams on a link, with their answers waited for.
struct StreamLogDriver {
    let driver: LinkDriver
    let keys = LogKeys(cluster: "test")

    /// Kept as long as it is spoken to.
    private let server: RedisFixture?

    init(_ driver: LinkDriver, _ server: RedisFixture? = nil) {
        self.driver = driver
        self.server = server
    }

    func open(_ least: UInt64 = 1000, settling: Duration = .zero) throws -> SharedStreamsOpening {
        guard StreamScripts(keys).queueOpening(leastEpoch: least, settling: settling, on: driver.link, tag: 1, at: .now)
        else {
            throw RedisFixtureError(description: "refused")
        }
        return try #require(StreamScripts.parseOpening(try driver.reply(1)))
    }

    func write(_ changes: [SharedStreamChange], _ epoch: UInt64, isReturned: Bool = false) throws -> RedisValue {
        guard
            StreamScripts(keys).queueChanges(
                changes, in: epoch, by: 7, isReturned: isReturned, on: driver.link, tag: 2, at: .now)
        else { throw RedisFixtureError(description: "refused") }
        return try driver.reply(2)
    }
}
