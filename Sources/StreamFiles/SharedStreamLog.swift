import Glibc
import Logging
package import Redis
import Streams
import Workers

/// Where hubs of one cluster have their streams together.
package struct SharedStreams: Sendable {
    package let address: RedisAddress
    /// Hubs of the same name share streams.
    package let cluster: String
    /// The hub's own name, for `CLIENT LIST`.
    package let node: String

    package init(address: RedisAddress, cluster: String, node: String) {
        self.address = address
        self.cluster = cluster
        self.node = node
    }
}

/// The hub's link with the logs of streams that hubs share, in Redis.
///
/// A question waits for its answer, as a write to a disk does: for a round trip, and where Redis says nothing any more for as long as
/// that takes to be noticed (1.5 s). What others publish meanwhile is kept, up to a bound. Confined to the worker's thread.
final class SharedStreamLog {
    /// Tells this process' publications from those of others.
    let process = UInt64.random(in: 1 ... .max)
    private let link: RedisLink
    private let keys: LogKeys
    private let scripts: StreamScripts
    private let logger: Logger
    private let place: String
    private var lastTag: UInt64 = 0
    /// The question that is waited for.
    private var asked: UInt64?
    private var reply: RedisValue?
    /// Of the connection that is there; nil before it is opened, and where it has to be opened anew.
    private(set) var epoch: UInt64?
    private var news: [SharedStreamNews] = []
    private var newsBytes = 0
    /// Some were dropped, or cannot be read: what they said has to be looked up.
    private(set) var hasLost = false
    /// Publications that nobody can read.
    private var unreadable = 0
    /// What was said last of why streams are not taken, and when; nil while they are.
    private var complaint: (reason: String, at: ContinuousClock.Instant)?
    /// What was to be read last is not there: Redis answered, and had less, or something else.
    private(set) var wasShort = false
    /// The connection is another than the one that was opened last.
    private(set) var isNew = false

    private var wasWrongType = false

    /// Bytes of publications that wait for the worker.
    private static let mostNews = 67_108_864
    /// Bytes of one answer while a log is read.
    private static let piece = 1 << 20
    /// For how long hubs write back what a Redis that lost it lacks: longer than one that lives needs to notice and to come back.
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

    /// Whether it can be asked.
    var isWhole: Bool { link.isWhole }

    var deadline: ContinuousClock.Instant? { link.deadline }

    /// Queues what is to be written, and adds what to poll.
    func poll(into descriptors: inout [pollfd]) { link.poll(into: &descriptors) }

    /// Goes on with whatever is possible.
    func advance() { for event in link.advance(at: .now) { take(event) } }

    var hasNews: Bool { !news.isEmpty }

    /// What others said since this was asked last, in order.
    func takeNews() -> [SharedStreamNews] {
        defer {
            news = []
            newsBytes = 0
        }
        return news
    }

    /// How many publications could not be read since this was asked last.
    func takeUnreadable() -> Int {
        defer { unreadable = 0 }
        return unreadable
    }

    private func take(_ event: LinkEvent) {
        switch event {
        case .whole:
            epoch = nil
            isNew = true
        case .away(let failure):
            epoch = nil
            // Whoever waits is told by `lost`; a ping is never answered then.
            asked = nil
            complain(failure.description)
        case .message(_, let bytes): hear(bytes)
        case .reply(let tag, let value):
            guard tag == asked else { return }
            reply = value
            asked = nil
        case .pong(let tag): if tag == asked { asked = nil }
        case .lost(let tag): if tag == asked { asked = nil }
        }
    }

    /// Once for each reason, and again where it lasts.
    private func complain(_ reason: String) {
        if let complaint, complaint.reason == reason, .now - complaint.at < .seconds(60) { return }
        complaint = (reason, .now)
        logger.warning("Streams are refused, as the other hubs would not have them: \(reason)")
    }

    private func hear(_ bytes: [UInt8]) {
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

    // MARK: Questions

    /// - Returns: nil where the link fell, or takes nothing now: whether it was done is not known.
    private func ask(_ queue: (UInt64, RedisLink.Instant) -> Bool) -> RedisValue? {
        lastTag += 1
        let tag = lastTag
        guard queue(tag, .now) else { return nil }
        reply = nil
        asked = tag
        while asked == tag {
            var polled: [pollfd] = []
            link.poll(into: &polled)
            let deadline = min(link.deadline ?? .now + .milliseconds(100), .now + .milliseconds(100))
            _ = Glibc.poll(&polled, nfds_t(polled.count), Workers.milliseconds(until: deadline))
            advance()
        }
        defer { reply = nil }
        wasWrongType = false
        if case .error(let text)? = reply {
            wasWrongType = text.hasPrefix("WRONGTYPE")
            if text.hasPrefix("EPOCH") {
                epoch = nil
            } else if !text.hasPrefix("SETTLING") {
                complain(text)
            }
            return nil
        }
        return reply
    }

    private func command(_ words: [RedisArgument]) -> RedisValue? {
        ask { link.command(words, tag: $0, at: $1) }
    }

    /// Opens the streams on this connection, and forgets what was lost: whoever calls looks everything up.
    ///
    /// - Parameter least: of a new epoch; the clock in milliseconds, and more than any epoch that is known.
    func open(least: UInt64) -> SharedStreamsOpening? {
        hasLost = false
        isNew = false
        let opening = ask { scripts.open(leastEpoch: least, settling: Self.settling, on: link, tag: $0, at: $1) }
            .flatMap { StreamScripts.opening($0) }
        epoch = opening?.epoch
        if opening != nil, complaint != nil {
            logger.info("Connected to Redis: \(place) has the streams.")
            complaint = nil
        }
        return opening
    }

    /// - Returns: nil where it is not known what was done.
    func write(_ changes: [SharedStreamChange], isReturned: Bool = false) -> [SharedStreamOutcome]? {
        guard let epoch else { return nil }
        let outcomes = ask {
            scripts.write(
                changes, in: epoch, by: process, isReturned: isReturned, on: link, tag: $0, at: $1)
        }.flatMap { StreamScripts.outcomes($0) }
        return outcomes?.count == changes.count ? outcomes : nil
    }

    /// All streams that there are, by names.
    func index() -> [StreamName: SharedStreamPlace]? {
        command(["HGETALL", .text(keys.streams)]).flatMap { StreamScripts.index($0) }.map { found in
            var index: [StreamName: SharedStreamPlace] = [:]
            for (text, place) in found { if let name = StreamName(text) { index[name] = place } }
            return index
        }
    }

    /// Where one is now: nil where nothing is known, and `.some(nil)` where there is none.
    func place(of name: String) -> SharedStreamPlace?? {
        switch command(["HGET", .text(keys.streams), .text(name)]) {
        case nil: nil
        case let value?: .some(value.text.flatMap { SharedStreamPlace($0) })
        }
    }

    /// A part of a log.
    ///
    /// - Returns: nil where it cannot be read, or is shorter (`wasShort`).
    func read(_ id: UInt64, _ range: Range<Int>) -> [UInt8]? {
        wasShort = false
        let key = keys.stream(String(id, radix: 16))
        var bytes: [UInt8] = []
        while bytes.count < range.count {
            let start = range.lowerBound + bytes.count
            let last = min(range.upperBound, start + Self.piece) - 1
            let answer = command(["GETRANGE", .text(key), .integer(Int64(start)), .integer(Int64(last))])
            guard case .bytes(let more)? = answer, more.count == last - start + 1 else {
                wasShort = answer != nil || wasWrongType
                return nil
            }
            bytes += more
        }
        return bytes
    }

    /// The epoch and the count that Redis has, once all that was published up to there has come; nil where it has another epoch.
    func settledCount() -> Int? {
        guard let epoch, let value = command(["GET", .text(keys.streamsHead)]) else { return nil }
        guard let head = StreamScripts.head(value), head.epoch == epoch else {
            self.epoch = nil
            return nil
        }
        _ = ask { link.publishPing(tag: $0, at: $1) }
        return link.isWhole ? head.count : nil
    }

    /// Tells others what is not written. It may be lost.
    func tell(_ change: SharedStreamChange) {
        guard let epoch else { return }
        lastTag += 1
        let said = SharedStreamNews(epoch: epoch, count: nil, process: process, changes: [change])
        _ = link.command(["PUBLISH", .text(keys.streamsChannel), .bytes(said.encoded)], tag: lastTag, at: .now)
    }
}
