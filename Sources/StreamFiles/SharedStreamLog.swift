import Glibc
import Logging
package import Redis
import Streams
import Workers

/// The Redis in which the hubs of one cluster share their streams.
package struct SharedStreams: Sendable {
    package let address: RedisAddress
    /// Hubs with the same name share streams.
    package let cluster: String
    /// The hub's own name, for `CLIENT LIST`.
    package let node: String

    package init(address: RedisAddress, cluster: String, node: String) {
        self.address = address
        self.cluster = cluster
        self.node = node
    }
}

/// The hub's link to the logs of shared streams in Redis.
///
/// A request blocks until its reply, like a write to a disk: for a round trip, or until a silent Redis is noticed (1.5
/// s). Publications of other hubs are kept meanwhile, up to a bound. Confined to the worker's thread.
final class SharedStreamLog {
    /// Distinguishes publications of this process from those of others.
    let process = UInt64.random(in: 1 ... .max)
    private let link: RedisLink
    private let keys: LogKeys
    private let scripts: StreamScripts
    private let logger: Logger
    private let place: String
    private var lastTag: UInt64 = 0
    /// The tag of the request being waited for.
    private var asked: UInt64?
    private var reply: RedisValue?
    /// The epoch opened on the current connection; nil before it is opened, and when it must be opened again.
    private(set) var epoch: UInt64?
    private var news: [SharedStreamNews] = []
    private var newsBytes = 0
    /// Publications were dropped or unreadable: their content must be looked up.
    private(set) var hasLost = false
    /// The number of unreadable publications.
    private var unreadable = 0
    /// The last logged reason why streams are refused, and when; nil while they are accepted.
    private var complaint: (reason: String, at: ContinuousClock.Instant)?
    /// The last read failed because Redis answered with less, or with something else.
    private(set) var wasShort = false
    /// The connection is a new one, not yet opened.
    private(set) var isNew = false

    private var wasWrongType = false

    /// Bytes of publications that may wait for the worker.
    private static let mostNews = 67_108_864
    /// Bytes in one reply while a log is read.
    private static let piece = 1 << 20
    /// How long hubs may write back what a Redis lost: longer than a living hub needs to notice the loss and reconnect.
    private static let settling = Duration.seconds(2)

    init(_ shared: SharedStreams, _ logger: Logger) {
        keys = LogKeys(cluster: shared.cluster)
        scripts = StreamScripts(keys)
        self.logger = logger
        place = "\(shared.address)"
        link = RedisLink(
            shared.address, name: "roost-\(shared.node)-streams", channels: [keys.streamsChannel],
            scripts: StreamScripts.all, at: .now)
    }

    /// Whether Redis can be reached.
    var isWhole: Bool { link.isWhole }

    var deadline: ContinuousClock.Instant? { link.deadline }

    /// Writes queued commands, and adds the descriptors to poll.
    func preparePoll(into descriptors: inout [pollfd]) { link.preparePoll(into: &descriptors) }

    /// Makes whatever progress is possible.
    func makeProgress() { for event in link.makeProgress(at: .now) { handleEvent(event) } }

    var hasNews: Bool { !news.isEmpty }

    /// The publications of other hubs since the last call, in order.
    func takeNews() -> [SharedStreamNews] {
        defer {
            news = []
            newsBytes = 0
        }
        return news
    }

    /// The number of unreadable publications since the last call.
    func takeUnreadable() -> Int {
        defer { unreadable = 0 }
        return unreadable
    }

    private func handleEvent(_ event: LinkEvent) {
        switch event {
        case .whole:
            epoch = nil
            isNew = true
        case .away(let failure):
            epoch = nil
            // A waiting request is told by `lost`; a ping would never be answered.
            asked = nil
            logComplaint(failure.description)
        case .message(_, let bytes): queueNews(bytes)
        case .reply(let tag, let value):
            guard tag == asked else { return }
            reply = value
            asked = nil
        case .pong(let tag): if tag == asked { asked = nil }
        case .lost(let tag): if tag == asked { asked = nil }
        }
    }

    /// Logs each reason once, and again if it lasts.
    private func logComplaint(_ reason: String) {
        if let complaint, complaint.reason == reason, .now - complaint.at < .seconds(60) { return }
        complaint = (reason, .now)
        logger.warning("Streams are refused, as the other hubs would not have them: \(reason)")
    }

    private func queueNews(_ bytes: [UInt8]) {
        guard newsBytes + bytes.count <= Self.mostNews else {
            hasLost = true
            return
        }
        guard let said = SharedStreamNews(bytes) else {
            (hasLost, unreadable) = (true, unreadable + 1)
            return
        }
        newsBytes += bytes.count
        news.append(said)
    }

    // MARK: Requests

    /// - Returns: nil if the link failed or accepts nothing now: the outcome is unknown.
    private func awaitReply(_ queue: (UInt64, RedisLink.Instant) -> Bool) -> RedisValue? {
        lastTag += 1
        let tag = lastTag
        guard queue(tag, .now) else { return nil }
        reply = nil
        asked = tag
        while asked == tag {
            var polled: [pollfd] = []
            link.preparePoll(into: &polled)
            let deadline = min(link.deadline ?? .now + .milliseconds(100), .now + .milliseconds(100))
            _ = Glibc.poll(&polled, nfds_t(polled.count), Workers.milliseconds(until: deadline))
            makeProgress()
        }
        defer { reply = nil }
        wasWrongType = false
        if case .error(let text)? = reply {
            wasWrongType = text.hasPrefix("WRONGTYPE")
            if text.hasPrefix("EPOCH") {
                epoch = nil
            } else if !text.hasPrefix("SETTLING") {
                logComplaint(text)
            }
            return nil
        }
        return reply
    }

    private func runCommand(_ words: [RedisArgument]) -> RedisValue? {
        awaitReply { link.queueCommand(words, tag: $0, at: $1) }
    }

    /// Opens the streams on this connection, and clears the signs of loss: the caller looks everything up.
    ///
    /// - Parameter least: the lowest number for a new epoch: the clock in milliseconds, and more than any known epoch.
    func openStreams(least: UInt64) -> SharedStreamsOpening? {
        hasLost = false
        isNew = false
        let opening = awaitReply {
            scripts.queueOpening(leastEpoch: least, settling: Self.settling, on: link, tag: $0, at: $1)
        }
        .flatMap { StreamScripts.parseOpening($0) }
        epoch = opening?.epoch
        if opening != nil, complaint != nil {
            logger.info("Connected to Redis: \(place) has the streams.")
            complaint = nil
        }
        return opening
    }

    /// - Returns: nil if the outcome is unknown.
    func writeChanges(_ changes: [SharedStreamChange], isReturned: Bool = false) -> [SharedStreamOutcome]? {
        guard let epoch else { return nil }
        let outcomes = awaitReply {
            scripts.queueChanges(
                changes, in: epoch, by: process, isReturned: isReturned, on: link, tag: $0, at: $1)
        }.flatMap { StreamScripts.parseOutcomes($0) }
        return outcomes?.count == changes.count ? outcomes : nil
    }

    /// All existing streams, by name.
    func readIndex() -> [StreamName: SharedStreamPlace]? {
        runCommand(["HGETALL", .text(keys.streams)]).flatMap { StreamScripts.parseIndex($0) }.map { found in
            var index: [StreamName: SharedStreamPlace] = [:]
            for (text, place) in found { if let name = StreamName(text) { index[name] = place } }
            return index
        }
    }

    /// The current state of a stream: nil if unknown, `.some(nil)` if there is none.
    func readPlace(of name: String) -> SharedStreamPlace?? {
        switch runCommand(["HGET", .text(keys.streams), .text(name)]) {
        case nil: nil
        case let value?: .some(value.text.flatMap { SharedStreamPlace($0) })
        }
    }

    /// Reads a part of a log.
    ///
    /// - Returns: nil if it cannot be read, or is shorter (`wasShort`).
    func readLog(_ id: UInt64, _ range: Range<Int>) -> [UInt8]? {
        wasShort = false
        let key = keys.streamLog(String(id, radix: 16))
        var bytes: [UInt8] = []
        while bytes.count < range.count {
            let start = range.lowerBound + bytes.count
            let last = min(range.upperBound, start + Self.piece) - 1
            let answer = runCommand(["GETRANGE", .text(key), .integer(Int64(start)), .integer(Int64(last))])
            guard case .bytes(let more)? = answer, more.count == last - start + 1 else {
                wasShort = answer != nil || wasWrongType
                return nil
            }
            bytes += more
        }
        return bytes
    }

    /// The count of writes in Redis, once everything published up to it has arrived; nil if Redis has another epoch.
    func settledCount() -> Int? {
        guard let epoch, let value = runCommand(["GET", .text(keys.streamsHead)]) else { return nil }
        guard let head = StreamScripts.parseHead(value), head.epoch == epoch else {
            self.epoch = nil
            return nil
        }
        _ = awaitReply { link.publishPing(tag: $0, at: $1) }
        return link.isWhole ? head.count : nil
    }

    /// Publishes a change that is not stored. It may be lost.
    func announceChange(_ change: SharedStreamChange) {
        guard let epoch else { return }
        lastTag += 1
        let said = SharedStreamNews(epoch: epoch, count: nil, process: process, changes: [change])
        _ = link.queueCommand(["PUBLISH", .text(keys.streamsChannel), .bytes(said.encoded)], tag: lastTag, at: .now)
    }
}
