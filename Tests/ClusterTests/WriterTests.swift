import Cluster
import Testing

/// `LogWriter`, rule by rule.
@Suite struct LogWriterTests {
    private var writer: LogWriter
    private var now: Int64 = 0
    private let start = LogPlace(epoch: 100, offset: -1)

    private init(limits: LogWriter.Limits) throws {
        writer = LogWriter(own: try #require(HubIdentity(name: "own", boot: 1)), limits: limits)
    }

    init() throws { try self.init(limits: LogWriter.Limits()) }

    private mutating func send(_ count: Int = 1, bytes: Int = 1) -> [String] {
        told { now, writer, actions in
            for _ in 0..<count { _ = writer.append([UInt8](repeating: 0, count: bytes), at: now, &actions) }
            writer.flush(at: now, &actions)
        }
    }

    private mutating func open(_ place: LogPlace, own: UInt64?) -> [String] {
        told { $1.logReopened(place, ownSequence: own, at: $0, &$2) }
    }

    private mutating func answer(_ offset: Int64) -> [String] {
        told { $1.publishSucceeded(LogPlace(epoch: 100, offset: offset), at: $0, &$2) }
    }

    private mutating func fail(_ failure: LogPublishFailure) -> [String] {
        told { $1.publishFailed(failure, at: $0, &$2) }
    }

    private mutating func told(_ work: (Int64, inout LogWriter, inout [LogWriterAction]) -> Void) -> [String] {
        var actions: [LogWriterAction] = []
        work(now, &writer, &actions)
        return actions.map { action in
            switch action {
            case .publish(let call):
                if case .value(let batch) = LogBatch.decode(call.batch[...]), batch.first...batch.last == call.sequences
                {
                    "\(call.sequences) in \(call.epoch)" + (batch.skipped > 0 ? " skipped \(batch.skipped)" : "")
                        + (batch.base > 0 ? " base \(batch.base)" : "")
                } else {
                    "not a batch"
                }
            case .reopen: "reopen"
            case .dropped(let range): "dropped \(range)"
            }
        }
    }

    @Test mutating func whatIsHeldGoesInOneCall() {
        _ = open(start, own: 0)
        #expect(send() == ["1...1 in 100"])
        writer.isHeld = true
        #expect(send(2) == [])
        #expect(!writer.isDue, "a call is in flight")
        #expect(answer(0) == [])
        #expect(send() == [])
        #expect(writer.isDue)
        #expect(writer.waiting == 3)
        writer.isHeld = false
        #expect(send(0) == ["2...4 in 100"])
        #expect(!writer.isDue)
    }

    @Test mutating func whatTheLogHasCountsOnceThoughItsAnswerWasLost() {
        _ = open(start, own: 0)
        _ = send(3)
        writer.linkWasLost()
        #expect(writer.statistics.written == 0)
        #expect(open(LogPlace(epoch: 100, offset: 0), own: 3) == [])
        #expect(writer.statistics.written == 3)
        // The log has lost the last of them: it is sent again, and counted no second time.
        writer.linkWasLost()
        #expect(open(start, own: 2) == ["3...3 in 100"])
        _ = answer(1)
        #expect(writer.statistics.written == 3 && writer.statistics.sentAgain == 1)
        _ = send()
        _ = answer(2)
        #expect(writer.statistics.written == 4)
    }

    @Test mutating func nothingIsWrittenBeforeTheLogIsOpen() {
        #expect(send(2) == [])
        #expect(!writer.isOpen)
        #expect(open(start, own: 0) == ["1...2 in 100"])
        #expect(writer.settled == 0)
        #expect(answer(0) == [])
        #expect(writer.settled == 2)
        #expect(writer.place == LogPlace(epoch: 100, offset: 0))
    }

    @Test mutating func allThatWaitsIsOneBatch() {
        _ = open(start, own: 0)
        #expect(send() == ["1...1 in 100"])
        #expect(send() == [])
        #expect(send(3) == [])
        #expect(writer.waiting == 5)
        #expect(answer(0) == ["2...5 in 100"])
        #expect(answer(1) == [])
        #expect(writer.waiting == 0)
    }

    @Test mutating func whatTheLogLacksIsSentAgainFirst() {
        _ = open(start, own: 0)
        _ = send(2)
        _ = answer(0)
        _ = send(2)
        #expect(fail(.unknown) == [])
        #expect(send() == [])
        // The log has the first; the answer for the others never came.
        #expect(open(LogPlace(epoch: 100, offset: 0), own: 1) == ["2...5 in 100"])
        #expect(writer.settled == 1)
        #expect(writer.statistics.sentAgain == 3)
    }

    @Test mutating func whatTheLogHasIsNotSentAgain() {
        _ = open(start, own: 0)
        _ = send(2)
        writer.linkWasLost()
        #expect(open(LogPlace(epoch: 100, offset: 0), own: 2) == [])
        #expect(send() == ["3...3 in 100"])
    }

    @Test mutating func anEpochThatIsOverIsOpenedAnew() {
        _ = open(start, own: 0)
        _ = send()
        #expect(fail(.epoch) == ["reopen"])
        #expect(send() == [])
        #expect(open(LogPlace(epoch: 200, offset: -1), own: nil) == ["1...2 in 200"])
    }

    @Test mutating func aLateAnswerSaysNothing() {
        _ = open(start, own: 0)
        _ = send()
        writer.linkWasLost()
        #expect(answer(0) == [])
        #expect(writer.settled == 0)
    }

    @Test mutating func whatIsTooOldIsGivenUp() {
        _ = open(start, own: 0)
        _ = send()
        _ = answer(0)
        writer.linkWasLost()
        _ = send(2)
        now = 5_000
        _ = send()
        now = 11_000
        #expect(send() == ["dropped 2...3"])
        #expect(open(LogPlace(epoch: 100, offset: 0), own: 1) == ["4...5 in 100 skipped 2"])
        #expect(writer.statistics.dropped == 2)
    }

    @Test mutating func whatHasNoRoomIsGivenUpOldestFirst() throws {
        var limits = LogWriter.Limits()
        limits.ringBytes = 1_000
        self = try Self(limits: limits)
        for _ in 0..<50 {
            _ = send(1, bytes: 136)
            #expect(writer.waitingBytes <= 1_000)
        }
        #expect(open(start, own: 0) == ["46...50 in 100 skipped 45"])
        #expect(writer.settled == 45)
    }

    @Test mutating func anotherLogIsToldOfNothingBefore() {
        _ = open(start, own: 0)
        _ = send(4)
        _ = answer(0)
        writer.linkWasLost()
        now = 11_000
        _ = send()
        let place = LogPlace(epoch: 200, offset: 6)
        #expect(open(place, own: nil) == ["5...5 in 200 base 4"])
        #expect(writer.since == place)
    }

    @Test mutating func whatIsSentAgainGoesInSmallBatches() throws {
        var limits = LogWriter.Limits()
        limits.resendBytes = 1_000
        self = try Self(limits: limits)
        _ = send(10, bytes: 300)
        #expect(open(start, own: 0) == ["1...2 in 100"])
        #expect(send(10, bytes: 300) == [])
        for offset in 0..<4 { #expect(answer(Int64(offset)).count == 1) }
        // What is new is one batch again.
        #expect(answer(4) == ["11...20 in 100"])
    }

    @Test mutating func aMessageThatFitsInNoBatchIsRefused() {
        var actions: [LogWriterAction] = []
        #expect(writer.append([UInt8](repeating: 0, count: 4 << 20), at: 0, &actions) == nil)
        #expect(writer.statistics.refused == 1)
        #expect(writer.append([UInt8](repeating: 0, count: 4_000_000), at: 0, &actions) == 1)
        #expect(writer.append([UInt8](repeating: 0, count: 4_000_000), at: 0, &actions) == 2)
        // Two large ones are two batches, and each of them can be read.
        #expect(open(start, own: 0) == ["1...1 in 100"])
        #expect(answer(0) == ["2...2 in 100"])
    }

    @Test mutating func eachCallHasItsOwnTag() {
        _ = open(start, own: 0)
        var tags: Set<UInt64> = [0]
        for offset in 0..<1_000 {
            var actions: [LogWriterAction] = []
            _ = writer.append([1], at: now, &actions)
            writer.flush(at: now, &actions)
            for case .publish(let call) in actions { #expect(tags.insert(call.tag).inserted) }
            _ = answer(Int64(offset))
        }
        #expect(tags.count == 1_001)
    }

    /// A log that claims to have what was never sent.
    @Test mutating func aLogHasNoMoreThanWasSent() {
        _ = open(start, own: 0)
        _ = send()
        _ = answer(0)
        #expect(open(LogPlace(epoch: 100, offset: 5), own: 1 << 48).isEmpty)
        #expect(writer.settled == 1 && writer.waiting == 0 && writer.statistics.written == 1)
        #expect(send().count == 1)
    }
}
