import Foundation
import Redis
import RedisFixtures
import StreamFiles
import Streams
import TestSupport
import Testing

/// A name that is opened again: each turn of a conversation is a generation of its own.
@Suite struct StreamGenerationTests {
    private func id(of answer: StreamAnswer) throws -> StreamID {
        guard case .created(let made) = answer else { throw Unexpected() }
        return made.id
    }

    @Test("A name is opened again once its stream has ended, and nothing of the one is in the other")
    func opensTheNext() throws {
        let stage = try ServiceStage()
        let first = try id(of: try stage.create("reply", isNext: true))
        try stage.append("one", to: "reply")
        guard case .existed(let same) = try stage.create("reply", isNext: true) else { throw Unexpected() }
        #expect(same.id == first, "a request that is repeated opens nothing")
        let before = try stage.buffer("reply")
        try stage.append("!", to: "reply", closes: true)
        #expect(try stage.create("reply").refusal == .otherConfiguration, "without the word it stays as it was")
        let second = try id(of: try stage.create("reply", "application/json", body: "[2]", isNext: true))
        #expect(try second != first && stage.text("reply") == "2\n" && stage.status("reply") == .open)
        #expect(!before.isGone && before.snapshot.end == 4, "whoever reads it has the rest")
        #expect(try stage.files.count == 1 && stage.statistics().bytes == 2)
    }

    @Test("What is meant for one generation is not done to another")
    func fences() throws {
        let stage = try ServiceStage()
        let first = try id(of: try stage.create("reply", closes: true))
        let second = try id(of: try stage.create("reply", isNext: true))
        var late = StreamAppend(body: Array("late".utf8))
        late.generation = first
        for request in [StreamRequest.append(late), .cancel(first, by: nil), .delete(first)] {
            guard case .refused(.otherGeneration(let now)) = try stage.ask(request, "reply") else { throw Unexpected() }
            #expect(now.id == second)
        }
        #expect(try stage.text("reply").isEmpty && stage.status("reply") == .open)
        late.generation = second
        try stage.ask(.append(late), "reply")
        try stage.ask(.cancel(second, by: nil), "reply")
        #expect(try stage.text("reply") == "late" && stage.status("reply")?.ending?.reason == .cancelled)
    }

    @Test("After a kill between the files of two turns the later one counts")
    func theLaterFileCounts() throws {
        let stage = try ServiceStage()
        try stage.create("reply", body: "one", closes: true)
        let old = try #require(try stage.files.first)
        let kept = try Data(contentsOf: URL(fileURLWithPath: stage.directory + "/" + old))
        try stage.create("reply", body: "two", isNext: true)
        // The file before is removed behind the write of the new one.
        try kept.write(to: URL(fileURLWithPath: stage.directory + "/" + old))
        for _ in 0..<2 {
            let after = try stage.afterKill()
            #expect(try after.text("reply") == "two" && after.files.count == 1)
        }
    }

    @Test("If the next turn cannot be kept, the one before is still there")
    func theOneBeforeStays() throws {
        let stage = try ServiceStage { $0.limits.bytes = 10 }
        try stage.create("reply", body: "one", closes: true)
        let refusal = try stage.create("reply", body: "more than there may be", isNext: true).refusal
        #expect(refusal == .streamTooLarge(limit: 10))
        #expect(try stage.text("reply") == "one" && stage.statistics().bytes == 3)
        #expect(try stage.afterKill().text("reply") == "one")
    }

    @Test("Of one name one turn that gave way is kept for its readers, so that slow ones cannot fill the memory")
    func oneIsKeptForReaders() throws {
        let stage = try ServiceStage()
        var read: [StreamBuffer] = []
        for turn in 1...4 {
            try stage.create("reply", body: "\(turn)", closes: true, isNext: true)
            read.append(try stage.buffer("reply"))
        }
        #expect(read.map(\.isGone) == [true, true, false, false])
    }

    @Test("All hubs of a cluster have the next turn, and readers of the one before keep what they lack of it")
    func onAllHubs() throws {
        let server = try RedisFixture()
        let stages = try ["a", "b"].map { node in
            try ServiceStage { $0.shared = SharedStreams(address: server.address, cluster: "test", node: node) }
        }
        for stage in stages {
            try eventually("streams can be written") { try stage.statistics().shared?.isOpen == true }
        }
        try stages[0].create("reply", body: "one", closes: true)
        try stages[1].ask(.touch, "reply")
        let before = try stages[1].buffer("reply")
        for turn in 2...20 {
            let (one, other) = (stages[turn % 2], stages[(turn + 1) % 2])
            try one.ask(.touch, "reply")
            let made = try id(of: try one.create("reply", body: "\(turn)", isNext: true))
            try other.ask(.touch, "reply")
            #expect(try other.text("reply") == "\(turn)" && other.buffer("reply").id == made)
            try other.append("!", to: "reply", closes: true)
            try one.ask(.touch, "reply")
            #expect(try one.text("reply") == "\(turn)!")
            if turn == 2 { #expect(!before.isGone && before.snapshot.end == 3) }
        }
        for stage in stages { #expect(try stage.files.filter { $0 != "epoch" }.count == 1) }
    }
}

private struct Unexpected: Error {}
