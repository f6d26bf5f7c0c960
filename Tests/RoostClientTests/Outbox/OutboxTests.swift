import Foundation
import RoostClient
import Testing

/// The outbox as apps use it: tasks, cancellation, events, on a time that the tests move.
@Suite(.timeLimit(.minutes(1))) struct OutboxTests {
    private let server = ManualServer()
    private let time = ManualTime()

    private func outbox(
        _ storage: sending any OutboxStorage = MemoryOutboxStorage(), _ options: OutboxOptions = OutboxOptions()
    ) -> Outbox<Draft> {
        Outbox(storage: storage, options: options, time: time.outboxTime, classify: ManualServer.classify) {
            [server] item in
            try await server.send(item)
        }
    }

    @Test func whatIsPutInIsSentInOrderAndTold() async throws {
        let outbox = outbox()
        var events = await outbox.events().makeAsyncIterator()
        let ids = [UUID(), UUID()]
        for id in ids { try await outbox.enqueue(Draft(text: "\(id)"), localID: id) }
        #expect(try await outbox.items().map(\.state) == [.waiting, .waiting])
        let run = Task { try await outbox.run() }
        for id in ids {
            let call = try #require(await server.next())
            #expect(call.item.localID == id && call.item.payload.text == "\(id)" && call.item.attempts == 1)
            #expect(try await outbox.items().first?.state == .sending)
            call.succeed()
        }
        for event in ids.map(OutboxEvent.queued) + ids.map(OutboxEvent.sent) { #expect(await events.next() == event) }
        #expect(try await outbox.items().isEmpty)
        run.cancel()
        try await run.value
    }

    @Test func anErrorIsRetriedAfterThePauseOrWhenTheNetworkIsBack() async throws {
        let outbox = outbox()
        var events = await outbox.events().makeAsyncIterator()
        let run = Task { try await outbox.run() }
        let id = UUID()
        #expect(try await outbox.enqueue(Draft(text: "hello"), localID: id) == .queued)
        #expect(try await outbox.enqueue(Draft(text: "again"), localID: id) == .duplicate)
        try #require(await server.next()).fail(ManualServer.Offline())
        await time.someoneSleeps(for: .milliseconds(500))
        time.advance(by: .milliseconds(500))
        try #require(await server.next()).fail(ManualServer.Offline())
        await time.someoneSleeps(for: .seconds(1))
        await outbox.networkIsBack()
        let last = try #require(await server.next())
        #expect(last.item.attempts == 3 && last.item.payload.text == "hello")
        last.succeed()
        let received: [OutboxEvent] = [
            .queued(id), .willRetry(id, after: .milliseconds(500), reason: "offline"),
            .willRetry(id, after: .seconds(1), reason: "offline"), .sent(id),
        ]
        for event in received { #expect(await events.next() == event) }
        run.cancel()
        try await run.value
        #expect(time.sleeping == 0)
    }

    @Test func aRejectedOneStaysUntilTheAppDecides() async throws {
        let outbox = outbox()
        var events = await outbox.events().makeAsyncIterator()
        let run = Task { try await outbox.run() }
        let (bad, good) = (UUID(), UUID())
        for id in [bad, good] { try await outbox.enqueue(Draft(text: ""), localID: id) }
        try #require(await server.next()).fail(ManualServer.Forbidden())
        try #require(await server.next()).succeed()
        for event in [.queued(bad), .queued(good), .failed(bad, reason: "not allowed"), .sent(good)] as [OutboxEvent] {
            #expect(await events.next() == event)
        }
        #expect(try await outbox.items().map(\.state) == [.failed("not allowed")])
        #expect(try await outbox.retry(localID: bad))
        try #require(await server.next()).fail(ManualServer.Forbidden())
        #expect(await events.next() == .queued(bad))
        #expect(await events.next() == .failed(bad, reason: "not allowed"))
        #expect(try await outbox.discard(localID: bad))
        #expect(try await outbox.items().isEmpty)
        run.cancel()
        try await run.value
    }

    @Test func aSendThatHangsIsCancelledAndTriedAgain() async throws {
        let outbox = outbox(MemoryOutboxStorage(), OutboxOptions(sendTimeout: .seconds(20)))
        var events = await outbox.events().makeAsyncIterator()
        let run = Task { try await outbox.run() }
        let id = UUID()
        try await outbox.enqueue(Draft(text: ""), localID: id)
        _ = try #require(await server.next())
        await time.someoneSleeps(for: .seconds(20))
        time.advance(by: .seconds(20))
        #expect(await events.next() == .queued(id))
        let reason = "\(OutboxError.timedOut(.seconds(20)))"
        #expect(await events.next() == .willRetry(id, after: .milliseconds(500), reason: reason))
        #expect(server.cancelled == 1 && server.running == 0)
        run.cancel()
        try await run.value
    }

    @Test func aChangeConfirmsWhatIsBeingSent() async throws {
        let outbox = outbox()
        var events = await outbox.events().makeAsyncIterator()
        let run = Task { try await outbox.run() }
        let (first, second) = (UUID(), UUID())
        for id in [first, second] { try await outbox.enqueue(Draft(text: ""), localID: id) }
        _ = try #require(await server.next())
        #expect(try await outbox.confirm(localID: first))
        #expect(try await outbox.confirm(localID: first) == false)
        #expect(try await outbox.confirm(localID: UUID()) == false)
        // Its answer may still come, but nobody waits for it, and not for long.
        let call = try #require(await server.next())
        #expect(call.item.localID == second && server.running == 2 && server.cancelled == 0)
        await time.someoneSleeps(for: .seconds(1))
        time.advance(by: .seconds(1))
        #expect(await server.nextCancelled() == first)
        call.succeed()
        for event in [.queued(first), .queued(second), .sent(first), .sent(second)] as [OutboxEvent] {
            #expect(await events.next() == event)
        }
        run.cancel()
        try await run.value
        #expect(server.cancelled == 1)
    }

    @Test func whatIsDiscardedIsNotSentOn() async throws {
        let outbox = outbox()
        let run = Task { try await outbox.run() }
        let id = UUID()
        try await outbox.enqueue(Draft(text: ""), localID: id)
        _ = try #require(await server.next())
        #expect(try await outbox.discard(localID: id))
        #expect(await server.nextCancelled() == id)
        #expect(try await outbox.items().isEmpty)
        run.cancel()
        try await run.value
    }

    @Test func cancellationLeavesNothingRunningAndLosesNothing() async throws {
        let outbox = outbox()
        let ids = [UUID(), UUID(), UUID()]
        let run = Task { try await outbox.run() }
        for id in ids { try await outbox.enqueue(Draft(text: ""), localID: id, lane: id.uuidString) }
        var calls: [ManualServer.Call] = []
        for _ in ids { calls.append(try #require(await server.next())) }
        calls[0].fail(ManualServer.Offline())
        await time.someoneSleeps(for: .milliseconds(500))
        run.cancel()
        try await run.value
        #expect(server.running == 0 && server.cancelled == 2 && time.sleeping == 0)
        #expect(try await outbox.items().map(\.state) == [.waiting, .waiting, .waiting])

        let again = Task { try await outbox.run() }
        // The two that were cut off at once; the other one still has to wait.
        for _ in 0..<2 { try #require(await server.next()).succeed() }
        await time.someoneSleeps(for: .milliseconds(500))
        time.advance(by: .milliseconds(500))
        let last = try #require(await server.next())
        #expect(last.item.localID == calls[0].item.localID)
        last.succeed()
        again.cancel()
        try await again.value
    }

    @Test func aSecondRunTakesOverFromTheFirst() async throws {
        let outbox = outbox()
        let first = Task { try await outbox.run() }
        let id = UUID()
        try await outbox.enqueue(Draft(text: ""), localID: id)
        _ = try #require(await server.next())
        let second = Task { try await outbox.run() }
        first.cancel()
        let call = try #require(await server.next())
        #expect(call.item.localID == id && call.item.attempts == 2 && server.running == 1)
        call.succeed()
        second.cancel()
        try await second.value
        try await first.value
    }

    @Test func aReaderThatFallsBehindIsTold() async throws {
        let outbox = outbox(MemoryOutboxStorage(), OutboxOptions(capacity: 2_000))
        let slow = await outbox.events()
        for _ in 0..<1_200 { try await outbox.enqueue(Draft(text: ""), localID: UUID()) }
        var count = 0
        var last: OutboxEvent?
        for await event in slow {
            count += 1
            last = event
        }
        #expect(last == .overflowed && count == 1_000)
        var fresh = await outbox.events().makeAsyncIterator()
        let id = UUID()
        try await outbox.enqueue(Draft(text: ""), localID: id)
        #expect(await fresh.next() == .queued(id))
    }

    @Test func whatThisVersionCannotReadIsKeptAsFailed() async throws {
        let (old, new) = (UUID(), UUID())
        let outbox = outbox(
            MemoryOutboxStorage(entries: [
                OutboxEntry(localID: old, lane: "", position: 7, payload: Data("{\"body\":1}".utf8), failure: nil)
            ]))
        var events = await outbox.events().makeAsyncIterator()
        let run = Task { try await outbox.run() }
        try await outbox.enqueue(Draft(text: "new"), localID: new)
        try #require(await server.next()).succeed()
        var received: [OutboxEvent] = []
        for _ in 0..<3 { received.append(try #require(await events.next())) }
        #expect(received.contains(.sent(new)))
        let isFailed = received.contains { event in
            if case .failed(old, let reason) = event {
                reason.hasPrefix("this version of the app cannot read it")
            } else {
                false
            }
        }
        #expect(isFailed)
        #expect(try await outbox.items().isEmpty)
        #expect(try await outbox.discard(localID: old))
        run.cancel()
        try await run.value
    }

    @Test func whatCannotBeStoredIsNotTakenOn() async throws {
        // Made here, and not reachable from here afterwards.
        func failing() -> DyingStorage {
            let storage = DyingStorage(Disk())
            storage.plan = .failBefore
            return storage
        }
        let outbox = outbox(failing())
        let id = UUID()
        await #expect(throws: DyingStorage.Failure.self) { try await outbox.enqueue(Draft(text: ""), localID: id) }
        #expect(try await outbox.items().isEmpty)
        #expect(try await outbox.enqueue(Draft(text: ""), localID: id) == .queued)
    }

    @Test func theFileBringsItOverARestart() async throws {
        let folder = try TemporaryFolder()
        let ids = (0..<120).map { _ in UUID() }
        do {
            let outbox = outbox(try FileOutboxStorage(at: folder.file))
            for (number, id) in ids.enumerated() {
                try await outbox.enqueue(Draft(text: "\(number)"), localID: id, lane: "room")
            }
        }
        let outbox = outbox(try FileOutboxStorage(at: folder.file))
        let run = Task { try await outbox.run() }
        for (number, id) in ids.enumerated() {
            let call = try #require(await server.next())
            #expect(call.item.localID == id && call.item.payload.text == "\(number)")
            call.succeed()
        }
        run.cancel()
        try await run.value
    }
}
