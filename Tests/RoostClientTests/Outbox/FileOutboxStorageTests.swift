import Foundation
import RoostClient
import Testing

@Suite struct FileOutboxStorageTests {
    private func entry(_ position: Int64, _ localID: UUID = UUID(), failure: String? = nil) -> OutboxEntry {
        OutboxEntry(
            localID: localID, lane: "line\nbreak \"quoted\"", position: position,
            payload: Data("{\"n\":\(position)}\n".utf8),
            failure: failure)
    }

    private func sorted(_ entries: [OutboxEntry]) -> [OutboxEntry] { entries.sorted { $0.position < $1.position } }

    private func reload(_ file: URL) throws -> [OutboxEntry] { sorted(try FileOutboxStorage(at: file).load()) }

    @Test func whatIsWrittenIsThereAgain() throws {
        let folder = try TemporaryFolder()
        let (one, two, three) = (entry(0), entry(1), entry(2))
        do {
            let storage = try FileOutboxStorage(at: folder.file)
            #expect(try storage.load().isEmpty)
            for entry in [one, two, three] { try storage.save(entry) }
            try storage.remove(two.localID)
            try storage.remove(UUID())
            try storage.save(entry(0, one.localID, failure: "no"))
        }
        #expect(try reload(folder.file) == [entry(0, one.localID, failure: "no"), three])
    }

    /// What a process or the power leaves that ends in the middle of a write: each length of the file is one such end.
    @Test func aFileThatWasCutOffAnywhereHoldsAllThatWasWrittenBefore() throws {
        let folder = try TemporaryFolder()
        let entries = (0..<Int64(3)).map { entry($0) }
        var states: [(length: Int, entries: [OutboxEntry])] = []
        do {
            let storage = try FileOutboxStorage(at: folder.file)
            _ = try storage.load()
            states.append((try folder.bytes().count, []))
            for index in entries.indices {
                try storage.save(entries[index])
                states.append((try folder.bytes().count, Array(entries[...index])))
            }
            try storage.remove(entries[0].localID)
            states.append((try folder.bytes().count, Array(entries[1...])))
        }
        let whole = try folder.bytes()
        for length in try #require(states.first).length...whole.count {
            let expected = try #require(states.last { $0.length <= length }).entries
            try whole.prefix(length).write(to: folder.file)
            let more = entry(9)
            do {
                let storage = try FileOutboxStorage(at: folder.file)
                #expect(sorted(try storage.load()) == expected, "cut at \(length)")
                try storage.save(more)
            }
            #expect(try reload(folder.file) == expected + [more], "written to after a cut at \(length)")
        }
    }

    /// A page of the last write may be on the disk where one before it is not.
    @Test func aLastLineOfNonsenseDoesNotCount() throws {
        let folder = try TemporaryFolder()
        let one = entry(0)
        do {
            let storage = try FileOutboxStorage(at: folder.file)
            _ = try storage.load()
            try storage.save(one)
        }
        try (try folder.bytes() + Data(repeating: 0, count: 50) + Data("\"}}\n".utf8)).write(to: folder.file)
        #expect(try reload(folder.file) == [one])
    }

    @Test func damageIsSaidAndNotMadeWorse() throws {
        let folder = try TemporaryFolder()
        do {
            let storage = try FileOutboxStorage(at: folder.file)
            _ = try storage.load()
            for number in 0..<Int64(3) { try storage.save(entry(number)) }
        }
        var bytes = try folder.bytes()
        let second = try #require(bytes.firstIndex(of: 0x0A)) + 1
        bytes[second] = 0x21
        try bytes.write(to: folder.file)
        #expect(throws: OutboxError.damaged(path: folder.file.path, line: 2)) { try reload(folder.file) }
        #expect(try folder.bytes() == bytes)
        try Data("something else".utf8).write(to: folder.file)
        #expect(throws: OutboxError.damaged(path: folder.file.path, line: 1)) { try reload(folder.file) }
    }

    @Test func twoOutboxesDoNotShareAFile() throws {
        let folder = try TemporaryFolder()
        let storage = try FileOutboxStorage(at: folder.file)
        _ = try storage.load()
        #expect(throws: OutboxError.inUse(path: folder.file.path)) { try FileOutboxStorage(at: folder.file) }
        try withExtendedLifetime(storage) { try storage.save(entry(0)) }
    }

    @Test func theFileDoesNotGrowWithWhatHasLeft() throws {
        let folder = try TemporaryFolder()
        let kept = entry(0)
        var longest = 0
        do {
            let storage = try FileOutboxStorage(at: folder.file)
            _ = try storage.load()
            try storage.save(kept)
            for number in 1...500 {
                let passing = entry(Int64(number))
                try storage.save(passing)
                try storage.remove(passing.localID)
                longest = max(longest, try folder.bytes().count)
            }
        }
        let line = try JSONEncoder().encode(kept).count
        #expect(longest < 120 * (line + 20))
        #expect(try reload(folder.file) == [kept])
    }

    @Test func aLogThatWasNotFinishedIsNotLookedAt() throws {
        let folder = try TemporaryFolder()
        let one = entry(0)
        do {
            let storage = try FileOutboxStorage(at: folder.file)
            _ = try storage.load()
            try storage.save(one)
        }
        try Data("{\"roost".utf8).write(to: folder.file.appendingPathExtension("new"))
        #expect(try reload(folder.file) == [one])
    }

    @Test func aFolderThatIsNotThereIsNamed() throws {
        let file = try TemporaryFolder().file.appendingPathComponent("missing/outbox")
        #expect {
            try FileOutboxStorage(at: file)
        } throws: { error in
            "\(error)" == "cannot open \(file.path).lock: No such file or directory"
        }
    }
}
