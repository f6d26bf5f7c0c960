import Redis
import Streams

/// One stream, as its only writer sees it: rules, readers' bytes, file, and decisions not yet written. Confined to the worker's thread.
final class KeptStream {
    private(set) var log: StreamLog
    /// The appends since the hub started.
    private(set) var count = AppendCount()
    var lease: StreamLease
    let buffer: StreamBuffer
    let file: StreamFolder.File
    /// The applied length of its log. The file has the same length, unless a write to the disk failed.
    private(set) var length = 0
    /// When other hubs were last told that the stream is read, in milliseconds since 1970.
    var usedToldAt: Int64 = 0
    /// Milliseconds since 1970; when the stream was last read or written.
    var usedAt: Int64
    /// Set while an end waits for its row: its closer, and later requests.
    var waiting: StreamWaiters?
    /// The generation that this one replaces, until its first record is written.
    var superseded: KeptStream?
    /// Set if the last attempt to end failed and the stream has not continued since.
    var trouble: CloseTrouble?
    /// The limits of its size; determined on first use.
    var bound: StreamBound?
    private var shown = StreamStatus.open

    // The changes of the current batch.
    private var before: StreamLog?
    private var frames: [UInt8] = []
    private var bytes: [UInt8] = []
    private var answers: [(answer: StreamAnswer, request: FileStreamService.Request)] = []
    /// The time of the batch's last append, and their number.
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

    var snapshot: StreamSnapshot { log.makeSnapshot(status) }

    var isTouched: Bool { isChanged || !answers.isEmpty }

    /// The current batch has something to write.
    var isChanged: Bool { before != nil }

    /// Stages a record; readers and callers learn of it once it is written.
    func stageRecord(_ record: StreamRecord) {
        before = before ?? log
        RecordFrame.append(record, to: &frames)
        bytes += record.visibleBytes(of: log)
        log.applyRecord(record)
    }

    /// Counts the last staged record as a producer's append.
    func countAppend(at now: Int64) { appended = (now, appended.count + 1) }

    /// The whole content once the end is committed, as `streams.on_close` receives it.
    func content(closing: StreamLog.Closing) -> [UInt8] {
        let whole = StreamBuffer(id: log.id, name: log.name, configuration: log.configuration)
        var bytes: [UInt8] = []
        buffer.copyBytes(log.start..<log.end, into: &bytes)
        _ = whole.append(bytes + closing.bytes)
        return StreamPiece(of: whole, in: whole.snapshot, from: 0, most: .max / 2)?.body ?? []
    }

    // MARK: Windows

    /// For a time window: the length of the stream at certain times, at most one per second.
    private var marks: [(at: Int64, end: Int)] = []
    private static let markInterval: Int64 = 1000

    /// Records the current end before an append.
    func markTime(at now: Int64) {
        if let last = marks.last, now - last.at < Self.markInterval { return }
        marks.append((now, log.end))
    }

    /// The offset before which everything was appended before a time. Content from before the hub started counts from then on.
    func endOffset(before time: Int64) -> Int {
        guard let passed = marks.lastIndex(where: { $0.at <= time }) else { return 0 }
        marks.removeFirst(passed)
        return marks[0].end
    }

    /// Rewrites the file without the content before an offset, and releases that.
    ///
    /// - Returns: the loops to notify; nil if the file could not be written, with the stream unchanged.
    func dropBytes(before start: Int, _ folder: StreamFolder) -> [Int]? {
        var bytes: [UInt8] = []
        buffer.copyBytes(start..<log.end, into: &bytes)
        var file: [UInt8] = []
        RecordFrame.append(.created(log.id, log.name, log.configuration, at: log.createdAt), to: &file)
        RecordFrame.append(.continued(log.makeCheckpoint(at: start)), to: &file)
        if !bytes.isEmpty { RecordFrame.append(.appended(bytes, nil, producer: nil, sequence: nil), to: &file) }
        guard folder.replace(self.file, with: file) else { return nil }
        length = self.file.length
        log.dropBytes(before: start)
        return buffer.dropBytes(before: start)
    }

    /// Bytes added by the batch.
    var added: Int { bytes.count }

    /// An answer may depend on unwritten records, so it is sent once they are written.
    func stageAnswer(_ answer: StreamAnswer, _ request: FileStreamService.Request) { answers.append((answer, request)) }

    /// The reason if the current batch ends the stream.
    var ends: StreamEnding.Reason? { before?.ending == nil && before != nil ? log.ending?.reason : nil }

    /// Writes the batch, and shows it to readers. Its answers must be sent afterwards.
    ///
    /// - Parameter isSynced: whether the batch must be on the disk, not only in the kernel's hands.
    /// - Returns: the loops to notify; nil if the batch could not be written, with the stream unchanged.
    func commitBatch(to folder: StreamFolder, isSynced: Bool) -> [Int]? {
        let bytes = self.bytes
        if let before {
            let length = file.length
            var isWritten = folder.append(frames, to: file)
            if isWritten, isSynced, !folder.syncFile(file) {
                folder.cutFile(file, at: length)
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
            count.addAppends(news.count, at: news.at)
        }
        let loops = bytes.isEmpty ? [] : buffer.append(bytes)
        return loops + publishStatus()
    }

    // MARK: Streams shared between hubs

    /// The batch's change of the shared log; without bytes if it only produces answers.
    var change: SharedStreamChange {
        SharedStreamChange(
            .append, name: log.name.text, id: log.id.number, before: length == 0 ? .absent : .length(length),
            bytes: frames)
    }

    /// The shared log has accepted the batch: copies it to the folder, and shows it to readers. Its answers must be sent afterwards.
    ///
    /// - Returns: the loops to notify.
    func commitBatch(copyingTo folder: StreamFolder, isSynced: Bool) -> [Int] {
        let (frames, bytes, news) = (frames, bytes, appended)
        before = nil
        self.frames = []
        self.bytes = []
        appended.count = 0
        if !frames.isEmpty { count.addAppends(news.count, at: news.at) }
        copyFrames(frames, to: folder, isSynced: isSynced)
        return (bytes.isEmpty ? [] : buffer.append(bytes)) + publishStatus()
    }

    /// An incomplete copy is not extended.
    private func copyFrames(_ frames: [UInt8], to folder: StreamFolder, isSynced: Bool) {
        guard !frames.isEmpty else { return }
        if file.length == length, folder.append(frames, to: file), isSynced { _ = folder.syncFile(file) }
        length += frames.count
    }

    /// The shared log differs from what the batch assumed, or cannot be reached: restores the stream as it was before.
    ///
    /// - Returns: the requests of the batch, in order, with their intended answers, and the requests that waited for it.
    func undoBatch() -> [(answer: StreamAnswer?, request: FileStreamService.Request)] {
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

    /// Copies and shows what another hub wrote.
    ///
    /// - Parameter frames: the encoded records.
    /// - Returns: the loops to notify.
    func takeIn(_ records: ArraySlice<StreamRecord>, _ frames: [UInt8], _ folder: StreamFolder) -> [Int] {
        var loops: [Int] = []
        for record in records {
            let more = record.visibleBytes(of: log)
            log.applyRecord(record)
            if !more.isEmpty { loops += buffer.append(more) }
        }
        copyFrames(frames, to: folder, isSynced: false)
        count.startGrowth(at: log.end)
        return loops + publishStatus()
    }

    /// The number of answers in this batch.
    var answerCount: Int { answers.count }

    /// Answers the requests of this batch.
    func sendAnswers(isWritten: Bool) {
        let answers = self.answers
        self.answers = []
        for (answer, request) in answers { request.answer(isWritten ? answer : .refused(.noRoom)) }
    }

    /// - Returns: the loops to notify.
    func publishStatus() -> [Int] {
        guard status != shown else { return [] }
        shown = status
        return buffer.setStatus(status)
    }

    /// Shows all records of a file at once.
    func restoreRecords(_ records: ArraySlice<StreamRecord>) {
        for record in records {
            let more = record.visibleBytes(of: log)
            log.applyRecord(record)
            if case .continued(let checkpoint) = record { _ = buffer.dropBytes(before: checkpoint.start) }
            if !more.isEmpty { _ = buffer.append(more) }
        }
        _ = publishStatus()
        count.startGrowth(at: log.end)
        length = file.length
    }

    /// Bytes and appends since the last call.
    func takeGrowth() -> (bytes: Int, appends: Int) { count.takeGrowth(upTo: log.end) }
}

/// Appends to one stream since the hub started, and how many of them the last survey counted.
struct AppendCount {
    private(set) var appends = 0
    /// Milliseconds since 1970; nil before the first append.
    private(set) var lastAt: Int64?
    private var surveyed = (bytes: 0, appends: 0)

    mutating func addAppends(_ count: Int, at now: Int64) {
        guard count > 0 else { return }
        appends += count
        lastAt = now
    }

    /// The content of the file does not count as growth.
    mutating func startGrowth(at end: Int) { surveyed.bytes = end }

    mutating func takeGrowth(upTo end: Int) -> (bytes: Int, appends: Int) {
        defer { surveyed = (end, appends) }
        return (end - surveyed.bytes, appends - surveyed.appends)
    }
}

extension StreamRecord {
    /// The bytes that the record shows to readers.
    fileprivate func visibleBytes(of log: StreamLog) -> [UInt8] {
        switch self {
        case .appended(let bytes, _, _, _): bytes
        case .closed: log.closing?.bytes ?? []
        case .created, .continued, .held, .closing, .reopened, .ended: []
        }
    }
}
