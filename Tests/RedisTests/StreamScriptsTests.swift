import RedisFixtures
import TestSupport
import Testing

@testable import Redis

/// The invariants of OpenStreams.lua and WriteStreams.lua, on a real server.
@Suite struct StreamScriptsTests {
    private func whole(_ server: RedisFixture) throws -> StreamLogDriver {
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        return StreamLogDriver(driver, server)
    }

    private func append(_ text: String, _ before: SharedStreamChange.Before, id: UInt64 = 0xA1) -> SharedStreamChange {
        SharedStreamChange(.append, name: "a b", id: id, before: before, bytes: Array(text.utf8))
    }

    @Test func aLogGrowsOnlyFromWhereItsWriterKnowsIt() throws {
        let server = try RedisFixture()
        let stage = try whole(server)
        let epoch = try stage.open().epoch
        #expect(
            StreamScripts.parseOutcomes(try stage.write([append("one", .absent), append("two", .length(3))], epoch))
                == [
                    .done, .done,
                ])
        let here = SharedStreamPlace(id: 0xA1, length: 6)
        for late in [
            append("x", .absent), append("x", .length(3)), append("x", .length(6), id: 0xA2), append("", .length(3)),
            SharedStreamChange(.remove, name: "a b", id: 0xA1, before: .length(3)),
            SharedStreamChange(.remove, name: "a b", id: 0xA2, before: .any),
        ] {
            #expect(StreamScripts.parseOutcomes(try stage.write([late], epoch)) == [.elsewhere(here)])
        }
        #expect(StreamScripts.parseOutcomes(try stage.write([append("", .length(6))], epoch)) == [.done])
        #expect(try server.session().runCommand("GET", "{roost:test}:s:a1").text == "onetwo")
        #expect(try stage.open().count == 1, "what asks alone counts as no write")
        let remove = SharedStreamChange(.remove, name: "a b", id: 0xA1, before: .any)
        #expect(StreamScripts.parseOutcomes(try stage.write([remove, remove], epoch)) == [.done, .elsewhere(nil)])
        #expect(try server.session().runCommand("DBSIZE") == .integer(1))
    }

    @Test func otherEpochsAndSettlingWriteNothing() throws {
        let server = try RedisFixture()
        let stage = try whole(server)
        let epoch = try stage.open(settling: .seconds(60)).epoch
        guard case .error(let settling) = try stage.write([append("x", .absent)], epoch) else {
            throw RedisFixtureError(description: "it was written")
        }
        #expect(settling.hasPrefix("SETTLING"))
        #expect(
            StreamScripts.parseOutcomes(try stage.write([append("x", .absent)], epoch, isReturned: true)) == [.done])
        guard case .error(let other) = try stage.write([append("y", .length(1))], epoch - 1, isReturned: true) else {
            throw RedisFixtureError(description: "it was written")
        }
        #expect(other.hasPrefix("EPOCH \(epoch)"))
        #expect(try stage.open(9000).epoch == epoch, "an epoch goes on while its server does")
        // A log that somebody cut.
        _ = try server.session().runCommand("SET", "{roost:test}:s:a1", "")
        guard case .error(let damaged) = try stage.write([append("y", .length(1))], epoch, isReturned: true) else {
            throw RedisFixtureError(description: "it was written")
        }
        #expect(damaged.hasPrefix("EPOCH none"))
        #expect(try stage.open(9000).epoch == 9000)
    }

    @Test func newsAreReadAsTheyAreWritten() throws {
        let change = SharedStreamChange(
            .append, name: "reply/1 Grüße", id: 1 << 63, before: .length(5), bytes: [0, 10, 255])
        let heard = SharedStreamChange(.heard, name: "x", id: 3, before: .any)
        for news in [
            SharedStreamNews(epoch: 5, count: 9, process: 0xFF, changes: [change, heard]),
            SharedStreamNews(epoch: 5, count: nil, process: 1, changes: []),
        ] {
            #expect(SharedStreamNews(news.encoded) == news)
        }
        let encoded = SharedStreamNews(epoch: 5, count: 9, process: 0xFF, changes: [change]).encoded
        for end in encoded.indices where end > 8 {
            #expect(SharedStreamNews(Array(encoded[..<end])).map { $0.changes.isEmpty } ?? true)
        }
        #expect(SharedStreamNews(Array("5 9 ff\n".utf8) + [255, 255, 255, 255, 255, 255, 255, 255]) == nil)
        #expect(SharedStreamNews(Array("hello".utf8)) == nil && SharedStreamNews([]) == nil)
    }

    @Test func whatIsPublishedIsWhatWasWritten() throws {
        let server = try RedisFixture()
        let stage = try whole(server)
        let listener = LinkDriver(server.address, channels: [stage.keys.streamsChannel])
        try listener.becomesWhole()
        let epoch = try stage.open().epoch
        _ = try stage.write([append("one", .absent), append("no", .length(1)), append("", .length(3))], epoch)
        let message = try listener.expect("what is published") {
            if case .message(_, let bytes) = $0 { bytes } else { nil }
        }
        #expect(
            SharedStreamNews(message)
                == SharedStreamNews(epoch: epoch, count: 1, process: 7, changes: [append("one", .absent)]))
    }

    /// A head that somebody else wrote counts as gone, and one that settles for ever settles anew.
    @Test(arguments: [
        "18446744073709551615 0 OWNER 0", "9007199254740993 0 OWNER 0", "1000 9223372036854775807 OWNER 0",
        "1000 0 OWNER 9223372036854775807", "1000 -1 OWNER 0", "x",
    ])
    func aDamagedHeadCountsAsGone(_ damaged: String) throws {
        let server = try RedisFixture()
        let stage = try whole(server)
        let epoch = try stage.open().epoch
        let session = try server.session()
        let owner = try #require(try session.runCommand("GET", .text(stage.keys.streamsHead)).text).split(
            separator: " ")[2]
        _ = try session.runCommand("SET", .text(stage.keys.streamsHead), .text(damaged.replacing("OWNER", with: owner)))
        _ = try stage.write([append("one", .absent)], epoch)
        let again = try stage.open()
        #expect(again.epoch >= epoch && again.epoch < 1 << 52 && again.count == 0 && again.settles == .zero)
        #expect(
            StreamScripts.parseOutcomes(try stage.write([append("one", .absent, id: 0xA2)], again.epoch)) == [.done])
    }

    /// Keys of another type than hubs write are somebody else's: hubs begin anew, and write back what they have.
    @Test(arguments: ["sm", "s", "s:a1"]) func keysOfOtherTypesAreReplaced(_ key: String) throws {
        let server = try RedisFixture()
        let stage = try whole(server)
        let epoch = try stage.open().epoch
        #expect(StreamScripts.parseOutcomes(try stage.write([append("one", .absent)], epoch)) == [.done])
        let session = try server.session()
        for (command, isOpenedFirst) in [("RPUSH", false), ("SADD", true)] {
            let before = try stage.open().epoch
            _ = try session.runCommand("DEL", .text("{roost:test}:\(key)"))
            _ = try session.runCommand(.text(command), .text("{roost:test}:\(key)"), "nonsense")
            if !isOpenedFirst {
                guard case .error(let text) = try stage.write([append("two", .length(3))], before) else {
                    throw RedisFixtureError(description: "it was written")
                }
                #expect(text.hasPrefix("EPOCH none"), "\(text)")
            }
            var again = try stage.open(before + 1)
            if isOpenedFirst, key == "s:a1" {
                _ = try stage.write([append("two", .length(3))], again.epoch)
                again = try stage.open(before + 1)
            }
            #expect(again.epoch > before)
            _ = try session.runCommand("DEL", "{roost:test}:s", "{roost:test}:s:a1")
            #expect(StreamScripts.parseOutcomes(try stage.write([append("one", .absent)], again.epoch)) == [.done])
        }
    }

    @Test func numbersBeyondCountingAreNone() {
        #expect(SharedStreamPlace("a1 9223372036854775807") == nil && SharedStreamPlace("a1 5")?.length == 5)
        #expect(
            StreamScripts.parseOpening(.array(["5", "9223372036854775807", "0"].map { .bytes(Array($0.utf8)) })) == nil)
        for line in ["18446744073709551615 1 a\n", "5 1 a\nxxxx"] { #expect(SharedStreamNews(Array(line.utf8)) == nil) }
        #expect(SharedStreamNews(Array("5 9223372036854775807 a\n".utf8))?.count == nil)
    }
}
