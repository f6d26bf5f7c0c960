import Cluster
import Testing

/// A hub that writes, and the log of one epoch, by hand.
struct LogStage {
    static let own = HubIdentity(name: "own", boot: 1)
    var reader: LogReader
    var now: Int64 = 0
    var epoch: UInt64 = 100
    var next: Int64 = 0
    var tag: UInt64 = 0

    init(limits: LogReader.Limits = LogReader.Limits()) throws {
        reader = LogReader(own: try #require(Self.own), limits: limits)
    }

    static func hub(_ name: String, boot: UInt64) throws -> HubIdentity {
        try #require(HubIdentity(name: name, boot: boot))
    }

    var head: LogHead { LogHead(place: LogPlace(epoch: epoch, offset: next - 1), tag: tag) }

    /// An entry at the log's end with `count` messages from `first` on. A message is its sequence.
    mutating func write(_ hub: HubIdentity, _ first: UInt64, count: Int = 1, since: LogPlace? = nil) -> LogEntry {
        let messages = (0..<count).map { Array("\(first + UInt64($0))".utf8)[...] }
        let batch = LogBatch(
            hub: hub, since: since ?? LogPlace(epoch: epoch, offset: -1), first: first, messages: messages)
        let previous = tag
        tag = UInt64(next) + 1_000 + epoch
        defer { next += 1 }
        let place = LogPlace(epoch: epoch, offset: next)
        return LogEntry(place: place, previous: previous, tag: tag, batch: batch.encoded()[...])
    }

    mutating func open(_ head: LogHead? = nil) -> [String] {
        let head = head ?? self.head
        return told { $1.logOpened(head, now: $0, &$2) }
    }
    mutating func publish(_ entry: LogEntry) -> [String] { told { $1.receivePublished(entry, now: $0, &$2) } }
    mutating func fetched(_ id: UInt64, _ entries: [LogEntry], end: Bool = true) -> [String] {
        told { $1.receiveFetched(id, entries, reachedEnd: end, now: $0, &$2) }
    }
    mutating func confirm(_ head: LogHead?) -> [String] { told { $1.confirmHead(head, now: $0, &$2) } }
    mutating func beat(
        _ hub: HubIdentity, settled: UInt64, at place: LogPlace, since: LogPlace? = nil, digest: UInt64 = 0,
        digestSequence: UInt64 = .max / 4
    ) -> [String] {
        let beat = HubBeat(
            hub: hub, number: 1, since: since ?? LogPlace(epoch: epoch, offset: -1), place: place, settled: settled,
            digest: digest, digestSequence: digestSequence)
        return told { $1.receiveBeat(beat, now: $0, &$2) }
    }
    mutating func direct(_ hub: HubIdentity, after sequence: UInt64?, bytes: Int = 1) -> [String] {
        let payload = [UInt8](repeating: 0x78, count: bytes)
        let message = DirectMessage(sender: hub, receiver: 1, afterSequence: sequence, payload: payload[...])
        return told { _, reader, actions in reader.receiveDirect(message, &actions) }
    }
    mutating func ended(_ hub: HubIdentity, since: LogPlace, silence: Int64 = 0) -> [String] {
        told { $1.publisherEnded(HubBeat.Ended(hub: hub, since: since, silence: silence), now: $0, &$2) }
    }

    /// The actions in words.
    private mutating func told(_ work: (Int64, inout LogReader, inout [LogReaderAction]) -> Void) -> [String] {
        var actions: [LogReaderAction] = []
        work(now, &reader, &actions)
        return actions.map { action in
            switch action {
            case .apply(let messages):
                "\(messages.isOwn ? "own" : "apply") \(messages.hub.name) "
                    + messages.messages.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",")
            case .fetch(let fetch): "fetch \(fetch.id) after \(fetch.after.id)"
            case .tellGap(let gap):
                "gap \(gap.hub?.name ?? "anybody") \(gap.missing.map { "\($0)" } ?? "after \(gap.after)") \(gap.reason)"
            case .forked(let place): "forked \(place?.id ?? "-")"
            case .reopen: "reopen"
            case .caughtUp(let head): "caught up \(head.place.id) own \(head.ownSequence.map(String.init) ?? "-")"
            case .deliver(let message): "deliver \(message.afterSequence.map(String.init) ?? "-")"
            case .stale(let message): "stale \(message.afterSequence.map(String.init) ?? "-")"
            case .compareDigest(_, let sequence, let digest): "digest \(digest) at \(sequence)"
            }
        }
    }
}

/// `LogReader`, rule by rule.
@Suite struct LogReaderTests {
    private var log: LogStage
    private let ann: HubIdentity
    private let bob: HubIdentity

    init() throws {
        log = try LogStage()
        ann = try LogStage.hub("ann", boot: 2)
        bob = try LogStage.hub("bob", boot: 3)
    }

    @Test mutating func aNewReaderBeginsAtTheHead() {
        _ = log.write(ann, 1, count: 5)
        #expect(log.open() == ["caught up 100-0 own 0"])
        #expect(log.publish(log.write(ann, 6)) == ["apply ann 6"])
        // One that came before it: what it had sent is owed to nobody, what it sends now is.
        #expect(log.beat(bob, settled: 40, at: log.head.place) == [])
        #expect(log.publish(log.write(bob, 42)) == ["gap bob 41...41 missing", "apply bob 42"])
    }

    @Test mutating func aHubThatCameLaterOwesAll() {
        _ = log.open()
        #expect(log.publish(log.write(ann, 3)) == ["gap ann 1...2 missing", "apply ann 3"])
    }

    @Test mutating func whatCameTwiceIsAppliedOnce() {
        _ = log.open()
        let entry = log.write(ann, 1, count: 2)
        #expect(log.publish(entry) == ["apply ann 1,2"])
        #expect(log.publish(entry) == [])
        #expect(log.publish(log.write(ann, 1, count: 3)) == ["apply ann 3"])
        #expect(log.reader.statistics.repeats == 1)
    }

    @Test mutating func aHoleIsFetchedAndWhatCameAheadWaits() {
        _ = log.open()
        let lost = [log.write(ann, 1), log.write(bob, 1)]
        #expect(log.publish(log.write(ann, 2)) == ["fetch 1 after 100--1"])
        #expect(log.publish(log.write(ann, 3)) == [])
        #expect(
            log.fetched(1, lost) == [
                "apply ann 1", "apply bob 1", "apply ann 2", "apply ann 3", "caught up 100-3 own 0",
            ])
        #expect(log.reader.waitingBytes == 0)
    }

    @Test mutating func fetchesGoInPieces() {
        _ = log.open()
        let entries = (1...4).map { log.write(ann, $0) }
        #expect(log.confirm(log.head) == ["fetch 1 after 100--1"])
        #expect(
            log.fetched(1, Array(entries[..<2]), end: false) == ["apply ann 1", "apply ann 2", "fetch 2 after 100-1"])
        // An answer that is not the one awaited says nothing.
        #expect(log.fetched(1, Array(entries[2...])) == [])
        #expect(log.fetched(2, Array(entries[2...])) == ["apply ann 3", "apply ann 4", "caught up 100-3 own 0"])
    }

    @Test mutating func whatCameAheadIsBounded() throws {
        var limits = LogReader.Limits()
        limits.aheadBytes = 400
        log = try LogStage(limits: limits)
        _ = log.open()
        let entries = (1...20).map { log.write(ann, $0) }
        for entry in entries[1...] {
            _ = log.publish(entry)
            #expect(log.reader.waitingBytes <= 400)
        }
        let told = log.fetched(1, Array(entries[..<1]), end: false)
        #expect(told.last == "fetch 2 after 100-2")
        #expect(log.fetched(2, Array(entries[3...])).last == "caught up 100-19 own 0")
        #expect(log.reader.appliedSequence(ann) == 20)
    }

    @Test mutating func whatWasTrimmedIsTold() {
        _ = log.open()
        for sequence in 1...3 { _ = log.write(ann, UInt64(sequence)) }
        let last = log.write(ann, 4)
        #expect(log.confirm(log.head) == ["fetch 1 after 100--1"])
        #expect(
            log.fetched(1, [last]) == [
                "gap anybody after 0 trimmed", "gap ann 1...3 missing", "apply ann 4", "caught up 100-3 own 0",
            ])
    }

    @Test mutating func aBeatShowsWhatNothingFollows() {
        _ = log.open()
        let lost = log.write(ann, 1)
        #expect(log.beat(ann, settled: 1, at: log.head.place) == ["fetch 1 after 100--1"])
        #expect(log.fetched(1, [lost]) == ["apply ann 1", "caught up 100-0 own 0"])
        // What its writer gave up, and nothing follows.
        #expect(log.beat(ann, settled: 3, at: log.head.place) == ["gap ann 2...3 missing"])
    }

    @Test mutating func aBeatOfAnOlderEpochClaimsNothing() {
        _ = log.open()
        #expect(log.beat(ann, settled: 9, at: LogPlace(epoch: 90, offset: 5)) == [])
        #expect(log.publish(log.write(ann, 1)) == ["apply ann 1"])
        #expect(log.beat(ann, settled: 9, at: LogPlace(epoch: 110, offset: -1)) == ["reopen"])
    }

    @Test mutating func theRestOfTheOldEpochIsReadBeforeTheNew() {
        _ = log.open()
        _ = log.publish(log.write(ann, 1))
        let rest = log.write(ann, 2)
        let old = log.head.place
        log.reader.linkWasLost()
        (log.epoch, log.next, log.tag) = (200, 0, 0)
        let new = log.write(ann, 3)
        // Of two epochs one had no entry.
        let head = LogHead(
            place: LogPlace(epoch: 200, offset: 0), tag: log.tag, older: [LogPlace(epoch: 150, offset: -1), old])
        #expect(log.open(head) == ["fetch 1 after 100-0"])
        #expect(log.fetched(1, [rest, new]) == ["apply ann 2", "apply ann 3", "caught up 200-0 own 0"])
    }

    @Test mutating func aLostTailIsAForkAndIsSentAgain() throws {
        let own = log.reader.own
        _ = log.open()
        #expect(log.publish(log.write(own, 1)) == ["own own 1"])
        #expect(log.publish(log.write(ann, 1)) == ["apply ann 1"])
        #expect(log.publish(log.write(own, 2)) == ["own own 2"])
        (log.epoch, log.next, log.tag) = (200, 0, 0)
        let head = LogHead(place: LogPlace(epoch: 200, offset: -1), tag: 0, older: [LogPlace(epoch: 100, offset: 0)])
        #expect(log.open(head) == ["forked 100-0", "caught up 200--1 own 1"])
        #expect(log.publish(log.write(ann, 1, count: 2)) == ["apply ann 2"])
    }

    @Test mutating func anEmptyLogIsReadFromItsBeginning() {
        _ = log.open()
        _ = log.publish(log.write(ann, 1))
        (log.epoch, log.next, log.tag) = (200, 0, 0)
        let again = log.write(ann, 1, count: 2)
        #expect(log.open() == ["forked -", "fetch 1 after 200--1"])
        #expect(log.fetched(1, [again]) == ["apply ann 2", "caught up 200-0 own -"])
        // Away for longer than a hub needs to come and go unheard.
        (log.epoch, log.next, log.tag, log.now) = (300, 0, 0, 60_000)
        #expect(log.open() == ["forked -", "gap anybody after 0 logLost", "caught up 300--1 own -"])
    }

    @Test mutating func anotherEpochIsNotFollowedBeforeItIsOpened() {
        _ = log.open()
        (log.epoch, log.next, log.tag) = (200, 0, 0)
        let entry = log.write(ann, 1)
        #expect(log.publish(entry) == ["reopen"])
        #expect(log.publish(entry) == [])
        #expect(log.confirm(nil) == [])
        let head = LogHead(
            place: LogPlace(epoch: 200, offset: 0), tag: log.tag, older: [LogPlace(epoch: 100, offset: -1)])
        #expect(log.open(head) == ["fetch 1 after 100--1"])
        #expect(log.fetched(1, [entry]) == ["apply ann 1", "caught up 200-0 own 0"])
        #expect(log.confirm(nil) == ["reopen"])
    }

    @Test mutating func aHeadThatIsOlderThanWhatCameIsNoStepBack() {
        _ = log.open()
        let entries = (1...3).map { log.write(ann, $0) }
        for entry in entries { _ = log.publish(entry) }
        let older = LogHead(place: entries[0].place, tag: entries[0].tag)
        #expect(log.open(older) == ["caught up 100-2 own 0"])
        #expect(log.confirm(older) == [])
        // The same place with another tag: the log was written anew.
        let other = LogHead(place: entries[0].place, tag: 77)
        #expect(log.confirm(other) == ["reopen"])
        #expect(log.open(other).first == "forked -")
    }

    @Test mutating func aLogThatWasWrittenAnewIsReadAgain() {
        _ = log.open()
        let first = log.write(ann, 1)
        _ = log.publish(first)
        _ = log.publish(log.write(ann, 2))
        // The engine lost the second entry, and another one has its place.
        (log.next, log.tag) = (1, first.tag)
        var other = log.write(bob, 1)
        other.tag = 9
        log.tag = 9
        let next = log.write(ann, 2, count: 2)
        #expect(log.publish(next) == ["fetch 1 after 100-1"])
        #expect(log.fetched(1, [next]) == ["forked -", "fetch 2 after 100--1"])
        #expect(log.fetched(2, [first, other, next]) == ["apply bob 1", "apply ann 3", "caught up 100-2 own -"])
    }

    @Test mutating func aDeathIsToldWithWhatIsKnownOfTheTail() {
        _ = log.open()
        let since = LogPlace(epoch: 100, offset: -1)
        _ = log.publish(log.write(ann, 1))
        #expect(log.ended(ann, since: since) == ["gap ann after 1 endedUnsent"])
        #expect(log.ended(ann, since: since) == [])
        _ = log.publish(log.write(bob, 1))
        (log.epoch, log.next, log.tag) = (200, 0, 0)
        _ = log.open(LogHead(place: LogPlace(epoch: 200, offset: -1), tag: 0, older: [LogPlace(epoch: 100, offset: 0)]))
        #expect(log.ended(bob, since: since) == ["gap bob after 1 endedWithTail"])
    }

    @Test mutating func ofHubsThatEndedBeforeItAReaderTellsNothing() throws {
        log.next = 5
        log.now = 10_000
        _ = log.open()
        let old = LogPlace(epoch: 50, offset: 0)
        #expect(log.ended(ann, since: old, silence: 4_000) == [])
        // Others heard of it while this reader was there already.
        log.now = 13_000
        #expect(log.ended(bob, since: old, silence: 2_000) == ["gap bob after 0 endedWithTail"])
    }

    @Test mutating func whatIsUnreadableIsSkippedAndCounted() {
        _ = log.open()
        var entry = log.write(ann, 1)
        entry.batch = [7, 1, 2]
        #expect(log.publish(entry) == [])
        entry = log.write(ann, 2)
        entry.batch = [1, 2]
        #expect(log.publish(entry) == [])
        #expect(log.reader.statistics.unknownVersions == 1)
        #expect(log.reader.statistics.malformed == 1)
        #expect(log.publish(log.write(ann, 3)) == ["gap ann 1...2 missing", "apply ann 3"])
    }

    /// An entry that somebody damaged in Redis: what it had is told to be missing, and reading goes on behind it.
    @Test mutating func aDamagedEntryIsPassed() throws {
        _ = log.open()
        _ = log.publish(log.write(ann, 1))
        var damaged = log.write(ann, 2)
        damaged.batch = []
        #expect(log.publish(damaged).isEmpty)
        #expect(log.reader.statistics.malformed == 1)
        #expect(log.publish(log.write(ann, 3)) == ["gap ann 2...2 missing", "apply ann 3"])
        // As it is read from the log: nothing of it is known but its place.
        damaged = log.write(ann, 4)
        let after = log.write(ann, 5)
        _ = log.publish(after)
        damaged.batch = []
        (damaged.previous, damaged.tag) = (0, 0)
        let place = log.reader.place
        var told = log.fetched(1, [damaged, after])
        if let fetch = told.first(where: { $0.hasPrefix("fetch") }) {
            #expect(fetch.hasPrefix("fetch 2"))
            told += log.fetched(2, [damaged, after])
        }
        #expect(told.contains("gap ann 4...4 missing") && told.contains("apply ann 5"), "\(told)")
        #expect(try #require(log.reader.place) > #require(place) && log.reader.isCaughtUp)
    }

    /// Nobody else speaks in this hub's name: by what it never sent its own messages would count as repeats.
    @Test mutating func anEntryInThisHubsNameThatItDidNotSendIsPassed() throws {
        let own = try #require(LogStage.own)
        _ = log.open()
        log.reader.sentThrough = 1
        #expect(log.publish(log.write(own, 1)) == ["own own 1"])
        #expect(log.publish(log.write(own, 1 << 40)).isEmpty)
        #expect(log.reader.statistics.malformed == 1)
        log.reader.sentThrough = 2
        #expect(log.publish(log.write(own, 2)) == ["own own 2"])
    }
}
