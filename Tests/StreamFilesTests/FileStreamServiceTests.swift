import Foundation
import StreamFiles
import Streams
import Synchronization
import TestSupport
import Testing

@Suite(.serialized) struct FileStreamServiceTests {
    @Test func aStreamIsMadeAppendedToAndClosed() throws {
        let stage = try ServiceStage()
        guard case .created(let made) = try stage.create("a") else { throw Unexpected() }
        #expect(made.end == 0 && made.status == .open)
        guard case .existed(let again) = try stage.create("a") else { throw Unexpected() }
        #expect(again.id == made.id)
        #expect(try stage.create("a", "application/json").refusal == .otherConfiguration)
        guard case .appended(let grown, isRepeated: false, stamp: nil) = try stage.append("Hel", to: "a") else {
            throw Unexpected()
        }
        #expect(grown.end == 3)
        try stage.append("lo", to: "a", closes: true)
        #expect(try stage.text("a") == "Hello")
        #expect(try stage.status("a")?.ending?.reason == .complete)
        #expect(try stage.append("!", to: "b").refusal == .notFound)
    }

    /// A kill at any moment: what was answered is there, and what was said of it counts on.
    @Test func whatWasAnsweredOutlivesAKill() throws {
        let stage = try ServiceStage()
        try stage.create("a", body: "0,")
        try stage.create("closed", body: "all", closes: true)
        var text = "0,"
        for number in 1...50 {
            try stage.append("\(number),", to: "a", by: ProducerStamp(id: "w", epoch: 0, sequence: number - 1))
            text += "\(number),"
            guard number % 10 == 0 else { continue }
            let next = try stage.afterKill()
            #expect(try next.text("a") == text && next.text("closed") == "all")
            #expect(try next.status("closed")?.ending?.reason == .complete)
            #expect(try next.status("a") == .stalled, "its producer has all of the time to come back")
            let repeated = try next.append("?", to: "a", by: ProducerStamp(id: "w", epoch: 0, sequence: number - 1))
            guard case .appended(_, isRepeated: true, _) = repeated else { throw Unexpected() }
            try next.append("!", to: "a", by: ProducerStamp(id: "w", epoch: 0, sequence: number))
            #expect(try next.text("a") == text + "!" && next.status("a") == .open)
        }
    }

    /// What a kill within a long write leaves: its first head comes last. And what a machine that stops does: zeros, of which nobody
    /// knows how many.
    @Test(arguments: [Array("\0\0\0\0open".utf8), Array("\0\0\0\0op".utf8), [UInt8](repeating: 0, count: 8)])
    func aTornWriteIsCutOffAndTheStreamGoesOn(_ head: [UInt8]) throws {
        let stage = try ServiceStage()
        try stage.create("a")
        try stage.append("whole", to: "a")
        let file = try #require(try stage.files.first)
        let writing = try #require(FileHandle(forWritingAtPath: stage.directory + "/" + file))
        try writing.seekToEnd()
        var rest: [UInt8] = [2, 2, 0, 0, 0] + Array("{}".utf8)
        // One write may be of several records.
        if head.last == UInt8(ascii: "n") { RecordFrame.append(.held, to: &rest) }
        try writing.write(contentsOf: head + (head.count == 8 ? rest : []))
        try writing.close()
        let next = try stage.afterKill()
        #expect(try next.text("a") == "whole")
        try next.append(", and more", to: "a")
        #expect(try next.afterKill().text("a") == "whole, and more")
    }

    @Test func aFileOfNoStreamIsPutAside() throws {
        let stage = try ServiceStage()
        try Data("not a stream".utf8).write(to: URL(fileURLWithPath: stage.directory + "/1.stream"))
        let next = try stage.afterKill()
        #expect(try next.files == ["1.stream.damaged"])
    }

    /// Somebody flips a bit in a file, or cuts it: what was acknowledged behind that is gone, and no offset gets another content.
    @Test(arguments: [false, true]) func aDamagedFileIsKeptAndItsStreamHasEnded(_ isCut: Bool) throws {
        let stage = try ServiceStage()
        try stage.create("a")
        for number in 0..<10 { try stage.append("\(number)" + String(repeating: "x", count: 99), to: "a") }
        let path = stage.directory + "/" + (try #require(try stage.files.first))
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        var damaged = whole
        if isCut { damaged = damaged.prefix(whole.count / 2) } else { damaged[whole.count / 2] ^= 1 }
        try damaged.write(to: URL(fileURLWithPath: path))
        let next = try stage.afterKill()
        let rest = try next.text("a")
        #expect(
            try !rest.isEmpty && rest.utf8.count % 100 == 0 && stage.text("a").hasPrefix(rest) && rest.utf8.count < 1000
        )
        #expect(try next.status("a")?.ending?.reason == .aborted)
        #expect(try next.append("other", to: "a").refusal?.reason == .ended)
        let kept = try #require(try next.files.first { $0.hasSuffix(".damaged") })
        #expect(try Data(contentsOf: URL(fileURLWithPath: next.directory + "/" + kept)) == damaged)
        // And so it stays.
        let later = try next.afterKill()
        #expect(try later.text("a") == rest && later.status("a")?.ending?.reason == .aborted)
        #expect(try later.files.count { $0.contains(".damaged") } == 1)
    }

    /// Zeros in place of any record's head are no torn write where records stand behind: all of them were acknowledged.
    @Test(arguments: [1, 5, 9]) func zerosInPlaceOfAHeadAreDamage(_ record: Int) throws {
        let stage = try ServiceStage()
        try stage.create("a")
        for number in 0..<10 { try stage.append("\(number)" + String(repeating: "x", count: 9_999), to: "a") }
        let path = stage.directory + "/" + (try #require(try stage.files.first))
        var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        var at = 0
        for _ in 0..<record { at += 8 + (0..<4).reduce(0) { $0 | Int(bytes[at + $1]) << (8 * $1) } }
        bytes.replaceSubrange(at..<at + 8, with: [UInt8](repeating: 0, count: 8))
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let next = try stage.afterKill()
        #expect(try next.text("a").utf8.count == (record - 1) * 10_000)
        #expect(try next.status("a")?.ending?.reason == .aborted)
        #expect(try next.files.contains { $0.hasSuffix(".damaged") })
    }

    /// Files that somebody removes or cuts under a hub: what is appended then would be lost, so it is not acknowledged.
    @Test(arguments: [false, true]) func whatCannotBeKeptIsNotAcknowledged(_ isCut: Bool) throws {
        let stage = try ServiceStage()
        try stage.create("a")
        try stage.append("kept", to: "a")
        let path = stage.directory + "/" + (try #require(try stage.files.first))
        if isCut { truncate(path, 20) } else { unlink(path) }
        #expect(try stage.append("lost", to: "a").refusal == .noRoom)
        #expect(try stage.text("a") == "kept" && stage.statistics().failures == 1)
        try stage.create("b", body: "others go on")
        #expect(try stage.afterKill().text("b") == "others go on")
    }

    @Test func aFolderIsOneHubs() throws {
        let stage = try ServiceStage()
        var setup = FileStreamService.Setup(directory: stage.directory, logger: .init(label: "other"))
        #expect {
            _ = try FileStreamService(setup)
        } throws: { "\($0)".contains("is another hub's") }
        setup.directory = stage.directory + "/not/there"
        #expect {
            _ = try FileStreamService(setup)
        } throws: { "\($0)".contains("cannot be made: No such file or directory; make the folder") }
    }

    /// A write that the disk does not take whole is cut back, refused, and can be sent again.
    @Test func aFullDiskRefusesAndLosesNothing() throws {
        let stage = try ServiceStage()
        try stage.create("a")
        try stage.append("kept", to: "a")
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(1), &limit)
        let unlimited = limit
        limit.rlim_cur = 4096
        setrlimit(__rlimit_resource_t(1), &limit)
        defer {
            var unlimited = unlimited
            setrlimit(__rlimit_resource_t(1), &unlimited)
        }
        let stamp = ProducerStamp(id: "w", epoch: 0, sequence: 0)
        let long = String(repeating: "x", count: 8000)
        #expect(try stage.append(long, to: "a", by: stamp).refusal == .noRoom)
        #expect(try stage.create("b", body: long).refusal == .noRoom)
        #expect(try stage.text("a") == "kept" && stage.status("b") == nil)
        #expect(try stage.afterKill().text("a") == "kept")
        let statistics = try stage.statistics()
        #expect(statistics.failures == 2 && statistics.bytes == 4)
        limit = unlimited
        setrlimit(__rlimit_resource_t(1), &limit)
        guard case .appended(_, isRepeated: false, _) = try stage.append(long, to: "a", by: stamp) else {
            throw Unexpected()
        }
        #expect(try stage.afterKill().text("a") == "kept" + long)
    }

    @Test func cancelFixesTheEnd() throws {
        let stage = try ServiceStage()
        try stage.create("a", body: "so far")
        guard case .done(let fixed?) = try stage.ask(.cancel(nil, by: nil), "a") else { throw Unexpected() }
        #expect(fixed.end == 6 && fixed.status.ending?.reason == .cancelled)
        guard case .ended(let found) = try stage.append("more", to: "a").refusal else { throw Unexpected() }
        #expect(found.end == 6)
        guard case .done(fixed) = try stage.ask(.cancel(nil, by: nil), "a") else { throw Unexpected() }
        #expect(try stage.afterKill().status("a")?.ending?.reason == .cancelled)
    }

    @Test func whatIsDeletedIsGoneFromDisk() throws {
        let stage = try ServiceStage()
        try stage.create("a", body: "x")
        let buffer = try stage.buffer("a")
        try stage.ask(.delete(nil), "a")
        #expect(try buffer.isGone && stage.files.isEmpty && stage.status("a") == nil)
        #expect(try stage.append("x", to: "a").refusal == .notFound)
        guard case .created(let other) = try stage.create("a") else { throw Unexpected() }
        #expect(other.id != buffer.id)
    }

    @Test func endedStreamsMakeRoomAndOpenOnesStay() throws {
        let stage = try ServiceStage { $0.limits.totalBytes = 100 }
        let forty = String(repeating: "x", count: 40)
        try stage.create("ended", body: forty, closes: true)
        try stage.create("open", body: forty)
        guard case .created = try stage.create("third", body: forty) else { throw Unexpected() }
        #expect(try stage.status("ended") == nil && stage.text("open") == forty)
        #expect(try stage.append(forty, to: "open").refusal == .tooMuch(limit: "streams.total_bytes"))
        #expect(try stage.create("fourth", body: forty).refusal == .tooMuch(limit: "streams.total_bytes"))
        #expect(try stage.text("open") == forty && stage.text("third") == forty)
        #expect(try stage.statistics().bytes == 80)
    }

    @Test func thereAreOnlySoMany() throws {
        let stage = try ServiceStage { $0.limits.count = 2 }
        try stage.create("a")
        try stage.create("b")
        #expect(try stage.create("c").refusal == .tooMuch(limit: "streams.count"))
        try stage.append("", to: "a", closes: true)
        guard case .created = try stage.create("c") else { throw Unexpected() }
    }

    /// More than the files that are held open.
    @Test func manyStreamsGrowInTurn() throws {
        let stage = try ServiceStage()
        for round in 0..<2 {
            for number in 0..<700 {
                if round == 0 { try stage.create("s/\(number)") }
                try stage.append("\(round)", to: "s/\(number)")
            }
        }
        let next = try stage.afterKill()
        for number in 0..<700 { #expect(try next.text("s/\(number)") == "01") }
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        #expect(descriptors.count < 700)
    }

    @Test func aProducerThatIsGoneIsSaidAndGivenUp() throws {
        let stage = try ServiceStage {
            $0.lease.stalledAfter = 1
            $0.lease.abortedAfter = 1
        }
        let hold = StreamHold(loop: 0, serial: 1)
        try stage.create("a")
        try stage.ask(.hold(hold), "a")
        try stage.append("x", to: "a", by: ProducerStamp(id: "w", epoch: 2, sequence: 0))
        guard case .done(let left?) = try stage.ask(.release(hold, isFault: true), "a") else { throw Unexpected() }
        #expect(left.status == .stalled)
        try eventually("the end") { try stage.status("a")?.ending?.reason == .aborted }
        let zombie = try stage.append("y", to: "a", by: ProducerStamp(id: "w", epoch: 2, sequence: 1))
        #expect(zombie.refusal == .staleEpoch(current: 3))
        #expect(try stage.afterKill().status("a")?.ending?.reason == .aborted)
    }

    @Test func lifetimesEnd() throws {
        let stage = try ServiceStage()
        try stage.create("past") { $0.lifetime = .until(1) }
        #expect(try stage.append("x", to: "past").refusal == .notFound)
        try stage.create("idle") { $0.lifetime = .idle(seconds: 1) }
        try eventually("its end") { try stage.status("idle") == nil }
        guard case .created = try stage.create("past", body: "again") else { throw Unexpected() }
    }

    @Test func loopsThatWatchAreToldOnceUntilTheyLook() throws {
        let stage = try ServiceStage()
        try stage.create("a")
        let buffer = try stage.buffer("a")
        stage.service.watchStream(buffer.name, by: 3)
        try stage.append("x", to: "a")
        try stage.append("y", to: "a")
        #expect(stage.sink.loops == [3])
        buffer.noteSeen(by: 3)
        try stage.append("z", to: "a")
        #expect(stage.sink.loops == [3, 3])
        stage.service.unwatchStream(buffer.name, by: 3)
        try stage.append("z", to: "a")
        #expect(stage.sink.loops == [3, 3])
    }

    @Test func whoWatchesANameIsToldOfAStreamThatIsMadeWithIt() throws {
        let stage = try ServiceStage()
        let name = try #require(StreamName("a"))
        #expect(stage.service.watchStream(name, by: 1) == nil)
        stage.service.watchStream(name, by: 1)
        try stage.create("b")
        #expect(stage.sink.loops.isEmpty)
        try stage.create("a")
        #expect(stage.sink.loops == [1])
        try stage.buffer("a").noteSeen(by: 1)
        stage.service.unwatchStream(name, by: 1)
        try stage.ask(.delete(nil), "a")
        #expect(stage.sink.loops == [1, 1], "it is watched as often as it was asked for")
        try stage.create("a")
        #expect(stage.sink.loops == [1, 1, 1])
        stage.service.unwatchStream(name, by: 1)
        try stage.append("x", to: "a")
        #expect(stage.sink.loops == [1, 1, 1])
    }

    /// Nobody takes requests from it yet, as if the disk stood still.
    @Test func whatWaitsIsBounded() throws {
        var setup = FileStreamService.Setup(
            directory: NSTemporaryDirectory() + "/streams-" + UUID().uuidString, logger: .init(label: "bounded"))
        setup.limits.bytes = 100_000_000
        let service = try FileStreamService(setup)
        let name = try #require(StreamName("a"))
        let refused = Mutex(0)
        for _ in 0..<100 {
            var append = StreamAppend(body: [UInt8](repeating: 1, count: 1_000_000))
            append.closes = true
            service.submitRequest(.append(append), on: name) { answer in
                if answer.refusal == .unavailable { refused.withLock { $0 += 1 } }
            }
        }
        #expect(refused.withLock { $0 } == 33)
        service.start(telling: NotedChanges())
        service.stop()
        #expect(refused.withLock { $0 } == 33, "the others were answered otherwise")
        try FileManager.default.removeItem(atPath: setup.directory)
    }

    @Test func whoAsksBehindTheEndOfTheServiceIsAnswered() throws {
        let stage = try ServiceStage()
        stage.service.stop()
        #expect(try stage.create("a").refusal == .unavailable)
    }

    private struct Unexpected: Error {}
}
