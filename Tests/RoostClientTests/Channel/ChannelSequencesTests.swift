import Foundation
import RoostClient
import Testing
import Wire

/// What an app reads of a channel: from the frames of a socket to its sequences.
@Suite(.timeLimit(.minutes(1))) struct ChannelSequencesTests {
    private struct Row: Decodable, Identifiable, Sendable {
        let id: Int
    }

    private let hub = ScriptedHub()

    private func room(bufferLimit: Int = 1024) throws -> Channel {
        var configuration = RoostClient.Configuration { "token" }
        configuration.bufferLimit = bufferLimit
        let url = try #require(URL(string: "ws://127.0.0.1"))
        return RoostClient(url: url, configuration: configuration, transport: hub).channel("room")
    }

    @Test func eachSequenceGetsWhatItReads() async throws {
        let room = try room()
        var cursors = room.broadcasts("cursor", of: [String: Int].self).makeAsyncIterator()
        var bytes = room.byteBroadcasts("cursor").makeAsyncIterator()
        var changes = room.changes(of: Row.self, in: "rows").makeAsyncIterator()
        var presence = room.presence.makeAsyncIterator()
        try await room.subscribe()
        hub.say("broadcast", "{\"event\":\"other\",\"payload\":{\"x\":0}}")
        hub.say("broadcast", "{\"event\":\"cursor\",\"payload\":{\"x\":\"no number\"}}")
        hub.say("broadcast", "{\"event\":\"cursor\",\"payload\":{\"x\":7}}")
        hub.say(.binary([4, 13, 6, 0, 0] + Array("realtime:roomcursor".utf8) + [9, 8]))
        hub.say("presence_state", "{\"ana\":{\"metas\":[{\"phx_ref\":\"1\"}]}}")
        let change =
            "{\"ids\":[1],\"cursor\":\"w.1\",\"data\":{\"type\":\"INSERT\",\"record\":{\"id\":5},\"errors\":null}}"
        hub.say("postgres_changes", change)
        hub.say("postgres_changes", change)
        hub.say("postgres_changes", change.replacing("\"w.1\"", with: "\"w.2\"").replacing("5", with: "6"))

        let cursor = try #require(try await cursors.next())
        #expect(cursor.payload == ["x": 7] && cursor.unreadableBefore == 1 && cursor.missedBefore == 0)
        #expect(try await bytes.next()?.payload == Data([9, 8]))
        #expect(await presence.next()?.joined == ["ana"])
        for id in [5, 6] {
            guard case .insert(let row, _) = try await changes.next() else {
                Issue.record("no insert")
                return
            }
            #expect(row.id == id)
        }
        await room.leave()
        #expect(try await cursors.next() == nil)
        #expect(try await changes.next() == nil)
        #expect(await presence.next() == nil)
    }

    @Test func aSlowConsumerLearnsWhatItMissed() async throws {
        let room = try room(bufferLimit: 2)
        var cursors = room.broadcasts("cursor", of: [String: Int].self).makeAsyncIterator()
        var messages = room.messages.makeAsyncIterator()
        var events = room.events.makeAsyncIterator()
        try await room.subscribe()
        for x in 1...5 { hub.say("broadcast", "{\"event\":\"cursor\",\"payload\":{\"x\":\(x)}}") }
        hub.say("system", "{\"message\":\"That was all.\"}")
        while let event = await events.next(), event != .notice("That was all.") {}

        let first = try #require(try await cursors.next())
        #expect(first.payload == ["x": 4] && first.missedBefore == 3)
        let second = try #require(try await cursors.next())
        #expect(second.payload == ["x": 5] && second.missedBefore == 0)
        // The event of a frame comes before the frame itself.
        hub.say("system", "{\"message\":\"And more.\"}")
        while let event = await events.next(), event != .notice("And more.") {}
        let message = try #require(await messages.next())
        #expect(message.missedBefore >= 5)
        #expect(await messages.next()?.missedBefore == 0)
    }
}
