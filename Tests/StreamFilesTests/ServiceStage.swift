import Foundation
import Logging
import StreamFiles
import Streams
import Synchronization
import Testing

/// A service on a folder of its own, which is asked in turn.
final class ServiceStage {
    let directory: String
    private(set) var service: FileStreamService
    let sink = NotedChanges()
    private var setup: FileStreamService.Setup

    init(_ adjust: (inout FileStreamService.Setup) -> Void = { _ in }) throws {
        directory = NSTemporaryDirectory() + "/streams-" + UUID().uuidString
        var setup = FileStreamService.Setup(directory: directory, logger: Logger(label: "streams"))
        adjust(&setup)
        self.setup = setup
        service = try FileStreamService(setup)
        service.start(telling: sink)
    }

    deinit {
        service.stop()
        do { try FileManager.default.removeItem(atPath: directory) } catch { Issue.record(error) }
    }

    /// The folder as a process finds it that comes after a `kill -9` at this moment: what the kernel has.
    ///
    /// - Parameter adjust: what is configured otherwise there.
    func afterKill(_ adjust: (inout FileStreamService.Setup) -> Void = { _ in }) throws -> ServiceStage {
        let copy = NSTemporaryDirectory() + "/streams-" + UUID().uuidString
        try FileManager.default.copyItem(atPath: directory, toPath: copy)
        var setup = setup
        adjust(&setup)
        return try ServiceStage(directory: copy, setup)
    }

    private init(directory: String, _ setup: FileStreamService.Setup) throws {
        self.directory = directory
        self.setup = setup
        self.setup.directory = directory
        service = try FileStreamService(self.setup)
        service.start(telling: sink)
    }

    @discardableResult func ask(_ request: StreamRequest, _ name: String) throws -> StreamAnswer {
        let name = try #require(StreamName(name))
        return try wait { service.submitRequest(request, on: name, answer: $0) }
    }

    /// Asks, and waits for the answer, which comes from another thread.
    func wait<Answer: Sendable>(_ ask: (@escaping @Sendable (Answer) -> Void) -> Void) throws -> Answer {
        let answer = Mutex<Answer?>(nil)
        let isThere = DispatchSemaphore(value: 0)
        ask { said in
            answer.withLock { $0 = said }
            isThere.signal()
        }
        isThere.wait()
        return try #require(answer.withLock { $0 })
    }

    @discardableResult func create(
        _ name: String, _ contentType: String = "text/plain", body: String = "", closes: Bool = false,
        isNext: Bool = false, _ adjust: (inout StreamConfiguration) -> Void = { _ in }
    ) throws -> StreamAnswer {
        var configuration = StreamConfiguration(contentType: contentType)
        adjust(&configuration)
        return try ask(.create(configuration, body: Array(body.utf8), closes: closes, isNext: isNext), name)
    }

    @discardableResult func append(
        _ text: String, to name: String, closes: Bool = false, by stamp: ProducerStamp? = nil
    ) throws -> StreamAnswer {
        var append = StreamAppend(body: Array(text.utf8))
        append.closes = closes
        append.producer = stamp
        return try ask(.append(append), name)
    }

    func buffer(_ name: String) throws -> StreamBuffer {
        let name = try #require(StreamName(name))
        return try #require(service.buffer(of: name))
    }

    func text(_ name: String) throws -> String {
        let buffer = try buffer(name)
        var bytes: [UInt8] = []
        buffer.copyBytes(0..<buffer.snapshot.end, into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    func status(_ name: String) throws -> StreamStatus? {
        let name = try #require(StreamName(name))
        return service.buffer(of: name)?.snapshot.status
    }

    /// The figures of all that was answered so far: they are published behind the answers of a turn, and a survey comes behind that.
    func statistics() throws -> StreamStatistics {
        _ = try wait { (then: @escaping @Sendable (StreamSurvey) -> Void) in service.surveyStreams(limit: 1, then: then)
        }
        return service.statistics
    }

    var files: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory).filter { $0 != "lock" } }
    }
}

extension StreamAnswer {
    var refusal: StreamRefusal? { if case .refused(let refusal) = self { refusal } else { nil } }
}

final class NotedChanges: StreamSink {
    private let noted = Mutex<[Int]>([])
    var loops: [Int] { noted.withLock { $0 } }
    func streamChanged(_ stream: StreamBuffer, for loop: Int) { noted.withLock { $0.append(loop) } }
}

/// Waits for what another thread does.
func eventually(_ what: String, _ condition: () throws -> Bool) throws {
    let deadline = ContinuousClock.now + .seconds(40)
    while try !condition() {
        try #require(ContinuousClock.now < deadline, "not in time: \(what)")
        usleep(1000)
    }
}
