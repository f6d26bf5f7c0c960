import Redis
import Streams

/// One stream, as its only writer has it: rules, readers' bytes, file, and what is decided and not written yet. Confined to the
/// worker's thread.
final class KeptStream {
    private(set) var log: StreamLog
    /// What was kept of it since the hub began.
    private(set) var count = AppendCount()
    var lease: StreamLease
    let buffer: StreamBuffer
    let file: StreamFolder.File
    /// Of its log, as far as it is applied: as many bytes has its file, unless the disk did not take them.
    private(set) var length = 0
    /// When other hubs were told that it is read, in milliseconds since 1970.
    var usedToldAt: Int64 = 0
    /// Milliseconds since 1970; when it was read or written last.
    var usedAt: Int64
    /// Where an end waits for its row: who asked for it, and what was asked since.
    var waiting: StreamWaiters?
    /// The generation whose place it takes, until its first record is written.
    var superseded: KeptStream?
    /// Its last attempt to end failed, and it has not gone on since.
    var trouble: CloseTrouble?
    /// How much it may have; found when it is asked for first.
    var bound: StreamBound?
    private var shown = StreamStatus.open

    // What the batch in hand did.
    private var before: StreamLog?
    private var frames: [UInt8] = []
    private var bytes: [UInt8] = []
    private var answers: [(answer: StreamAnswer, request: FileStreamService.Request)] = []
    /// When the last of the batch's appends came, and how many there are.
    private var appended: (at: Int64, count: Int) = (0, 0)

    init(_ log: StreamLog, _ file: StreamFolder.File, _ lease: StreamLease, at now: Int64) {
        self.log = log
        self.file = file
        self.lease = lease
        buffer = StreamBuffer(id: log.id, name: log.name, configuration: log.configuration)
        usedAt = now
    }

    var status: StreamStatus {
        log.ending.map { .ended($0) } ?? (lease.isStalled ? .stalled : .open)
    }

    var snapshot: StreamSnapshot { log.snapshot(status) }

    var isTouched: Bool { isChanged || !answers.isEmpty }

    /// The batch in hand does something that is not written.
    var isChanged: Bool { before != nil }

    /// Notes what is to be written; readers and whoever asked hear of it when it is.
    func write(_ record: StreamRecord) {
        before = before ?? log
        RecordFrame.append(record, to: &frames)
        bytes += record.bytes(of: log)
        log.apply(record)
    }

    /// The record that was noted last is what a producer asked for.
    func countAppend(at now: Int64) { appended = (now, appended.count + 1) }

    /// All that it has once its end is committed, as `streams.on_close` gets it.
    func content(closing: StreamLog.Closing) -> [UInt8] {
        let whole = StreamBuffer(id: log.id, name: log.name, configuration: log.configuration)
        var bytes: [UInt8] = []
        buffer.copy(log.start..<log.end, into: &bytes)
        _ = whole.append(bytes + closing.bytes)
        return StreamPiece(of: whole, in: whole.snapshot, from: 0, most: .max / 2)?.body ?? []
    }

    // MARK: Windows

    /// Of a window in time: when the stream had so many bytes, once a second at most.
    private var marks: [(at: Int64, end: Int)] = []
    private static let markInterval: Int64 = 1000

    /// Something is about to be appended.
    func mark(at now: Int64) {
        if let last = marks.last, now - last.at < Self.markInterval { return }
        marks.append((now, log.end))
    }

    /// Everything before it was appended before a time. What was there before the hub began counts from then on.
    func end(before time: Int64) -> Int {
        guard let passed = marks.lastIndex(where: { $0.at <= time }) else { return 0 }
        marks.removeFirst(passed)
        return marks[0].end
    }

    /// Writes its file without what stands before an offset, and lets that go.
    ///
    /// - Returns: loops that are to be told; nil if the file could not be written, and the stream is as it was before.
    func drop(before start: Int, _ folder: StreamFolder) -> [Int]? {
        var bytes: [UInt8] = []
        buffer.copy(start..<log.end, into: &bytes)
        var file: [UInt8] = []
        RecordFrame.append(.created(log.id, log.name, log.configuration, at: log.createdAt), to: &file)
        RecordFrame.append(.continued(log.checkpoint(at: start)), to: &file)
        if !bytes.isEmpty { RecordFrame.append(.appended(bytes, nil, producer: nil, sequence: nil), to: &file) }
        guard folder.replace(self.file, with: file) else { return nil }
        length = self.file.length
        log.drop(before: start)
        return buffer.drop(before: start)
    }

    /// Bytes that the batch adds.
    var added: Int { bytes.count }

    /// What was answered may rest on what is not written yet, so it is said after that.
    func answer(_ answer: StreamAnswer, _ request: FileStreamService.Request) { answers.append((answer, request)) }

    /// The batch in hand ends it.
    var ends: StreamEnding.Reason? { before?.ending == nil && before != nil ? log.ending?.reason : nil }

    /// Writes what the batch did, and shows it to readers. `say` has to follow.
    ///
    /// - Parameter isSynced: whether it has to be on the disk, and not only in the kernel's hands.
    /// - Returns: loops that are to be told; nil where it could not be written, and the stream is as it was before.
    func commit(to folder: StreamFolder, isSynced: Bool) -> [Int]? {
        let bytes = self.bytes
        if let before {
            let length = file.length
            var isWritten = folder.append(frames, to: file)
            if isWritten, isSynced, !folder.sync(file) {
                folder.cut(file, at: length)
                isWritten = false
            }
            if !isWritten { log = before }
            self.before = nil
            frames = []
            self.bytes = []
            let news = appended
            appended.count = 0
            guard isWritten else { return nil }
            self.length = file.length
            count.add(news.count, at: news.at)
        }
        let loops = bytes.isEmpty ? [] : buffer.append(bytes)
        return loops + show()
    }

    // MARK: What hubs share

    /// What the batch does to the log that hubs share; without bytes where it only answers by it.
    var change: SharedStreamChange {
        SharedStreamChange(
            .append, name: log.name.text, id: log.id.number, before: length == 0 ? .absent : .length(length),
            bytes: frames)
    }

    /// The log that hubs share has what the batch did: it is copied to the folder, and shown to readers. `say` has to follow.
    ///
    /// - Returns: loops that are to be told.
    func commit(copyingTo folder: StreamFolder, isSynced: Bool) -> [Int] {
        let (frames, bytes, news) = (frames, bytes, appended)
        before = nil
        self.frames = []
        self.bytes = []
        appended.count = 0
        if !frames.isEmpty { count.add(news.count, at: news.at) }
        copy(frames, to: folder, isSynced: isSynced)
        return (bytes.isEmpty ? [] : buffer.append(bytes)) + show()
    }

    /// A copy that lacks something is not gone on with.
    private func copy(_ frames: [UInt8], to folder: StreamFolder, isSynced: Bool) {
        guard !frames.isEmpty else { return }
        if file.length == length, folder.append(frames, to: file), isSynced { _ = folder.sync(file) }
        length += frames.count
    }

    /// The log that hubs share is not as the batch believed, or cannot be asked: the stream is as it was before.
    ///
    /// - Returns: what was asked in the batch, in order, with what would have been answered, and what waited behind it.
    func undo() -> [(answer: StreamAnswer?, request: FileStreamService.Request)] {
        log = before ?? log
        before = nil
        frames = []
        bytes = []
        appended.count = 0
        var asked: [(answer: StreamAnswer?, request: FileStreamService.Request)] = answers.map {
            ($0.answer, $0.request)
        }
        answers = []
        if let waiting, !waiting.isAsked, let closer = waiting.closer {
            asked += ((closer.request.map { [$0] } ?? []) + waiting.requests).map { (nil, $0) }
            self.waiting = nil
        }
        return asked
    }

    /// What another hub wrote, copied and shown.
    ///
    /// - Parameter frames: of these records.
    /// - Returns: loops that are to be told.
    func takeIn(_ records: ArraySlice<StreamRecord>, _ frames: [UInt8], _ folder: StreamFolder) -> [Int] {
        var loops: [Int] = []
        for record in records {
            let more = record.bytes(of: log)
            log.apply(record)
            if !more.isEmpty { loops += buffer.append(more) }
        }
        copy(frames, to: folder, isSynced: false)
        count.begin(at: log.end)
        return loops + show()
    }

    /// Those who are told of this batch.
    var answerCount: Int { answers.count }

    /// Answers whoever asked in this batch.
    func say(isWritten: Bool) {
        let answers = self.answers
        self.answers = []
        for (answer, request) in answers { request.answer(isWritten ? answer : .refused(.noRoom)) }
    }

    /// - Returns: loops that are to be told.
    func show() -> [Int] {
        guard status != shown else { return [] }
        shown = status
        return buffer.set(status)
    }

    /// Of a file: all that was written, shown at once.
    func restore(_ records: ArraySlice<StreamRecord>) {
        for record in records {
            let more = record.bytes(of: log)
            log.apply(record)
            if case .continued(let checkpoint) = record { _ = buffer.drop(before: checkpoint.start) }
            if !more.isEmpty { _ = buffer.append(more) }
        }
        _ = show()
        count.begin(at: log.end)
        length = file.length
    }

    /// Bytes and appends since this was asked last.
    func takeGrowth() -> (bytes: Int, appends: Int) { count.takeGrowth(upTo: log.end) }
}

/// Appends to one stream since the hub began, and what of them the last survey knew.
struct AppendCount {
    private(set) var appends = 0
    /// Milliseconds since 1970; nil before the first.
    private(set) var lastAt: Int64?
    private var surveyed = (bytes: 0, appends: 0)

    mutating func add(_ count: Int, at now: Int64) {
        guard count > 0 else { return }
        appends += count
        lastAt = now
    }

    /// What stood in the file is no growth.
    mutating func begin(at end: Int) { surveyed.bytes = end }

    mutating func takeGrowth(upTo end: Int) -> (bytes: Int, appends: Int) {
        defer { surveyed = (end, appends) }
        return (end - surveyed.bytes, appends - surveyed.appends)
    }
}

extension StreamRecord {
    /// What readers see with it.
    fileprivate func bytes(of log: StreamLog) -> [UInt8] {
        switch self {
        case .appended(let bytes, _, _, _): bytes
        case .closed: log.closing?.bytes ?? []
        case .created, .continued, .held, .closing, .reopened, .ended: []
        }
    }
}
