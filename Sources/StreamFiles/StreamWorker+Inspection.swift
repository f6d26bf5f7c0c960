import Streams

/// An operator's questions about streams. They cost nothing until asked; a survey walks over all streams once.
extension StreamWorker {
    /// A survey that comes longer than this after the last one reports no rates, which would cover an unobserved time.
    private static let longestPause = Duration.seconds(10)

    func makeSurvey(limit: Int) -> StreamSurvey {
        let seconds = surveyedAt.map { ContinuousClock.now - $0 }.flatMap {
            $0 <= Self.longestPause ? $0 / .seconds(1) : nil
        }
        surveyedAt = .now
        var survey = StreamSurvey()
        var busiest = Highest<(KeptStream, StreamLine.Rates?)>(limit: limit)
        var newest = Highest<(KeptStream, StreamLine.Rates?)>(limit: limit)
        for stream in streams.values {
            let growth = stream.takeGrowth()
            let rates = seconds.map {
                StreamLine.Rates(bytes: Double(growth.bytes) / $0, appends: Double(growth.appends) / $0)
            }
            if growth.bytes > 0 { busiest.insertElement((stream, rates), at: Int64(growth.bytes)) }
            newest.insertElement((stream, rates), at: stream.log.createdAt)
            guard stream.log.ending == nil else { continue }
            survey.open += 1
            if stream.lease.isStalled { survey.stalled += 1 }
        }
        survey.streams = streams.count
        survey.bytes = shares.all.bytes
        survey.busiest = busiest.elements.map { streamLine(of: $0, $1) }
        survey.newest = newest.elements.map { streamLine(of: $0, $1) }
        return survey
    }

    func makeReport(on name: StreamName, limit: Int) -> StreamReport? {
        guard let stream = streams[name] else { return nil }
        return StreamReport(
            streamLine(of: stream, nil), producers: stream.log.newestProducers(limit: limit),
            producerCount: stream.log.producerCount, limit: bound(of: stream).bytes,
            waiting: stream.waiting?.requests.count ?? 0, trouble: stream.trouble?.sentence,
            excerpt: stream.buffer.makeExcerpt())
    }

    private func streamLine(of stream: KeptStream, _ rates: StreamLine.Rates?) -> StreamLine {
        StreamLine(
            stream.snapshot, createdAt: stream.log.createdAt, appends: stream.count.appends,
            appendedAt: stream.count.lastAt, rates: rates, isClosing: stream.waiting != nil,
            producer: stream.log.newestProducers(limit: 1).first, holds: Array(stream.lease.connections))
    }
}

/// The highest elements, up to a limit, in descending order.
private struct Highest<Element> {
    private let limit: Int
    private var all: [(element: Element, height: Int64)] = []

    init(limit: Int) { self.limit = limit }

    var elements: [Element] { all.map(\.element) }

    mutating func insertElement(_ element: Element, at height: Int64) {
        if all.count == limit, let last = all.last, height <= last.height { return }
        all.insert((element, height), at: all.firstIndex { $0.height < height } ?? all.count)
        if all.count > limit { all.removeLast() }
    }
}
