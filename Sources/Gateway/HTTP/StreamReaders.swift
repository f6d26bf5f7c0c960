import DurableStreams
import Hub
import Streams
import Wire

/// A loop's readers of streams as events, and the offset that each has reached.
///
/// A reader is an offset: one with room is sent everything that it lacks, readers at the same place share one frame,
/// and nothing is stored for those without room.
final class StreamReaders {
    struct Reader {
        let name: StreamName
        /// Nil while the reader waits for the stream.
        var stream: StreamBuffer?
        var offset: Int
        /// From the reader's token, for the operator.
        var user: Name?
        /// For plain events, with the member that names one; nil for `live=sse`.
        var messages: StreamMessages?
        /// The generation to skip, while the reader waits for another.
        var known: StreamID?
        /// The turn is cancelled when its client closes the answer (`streams.routes` with `cancel`).
        var cancels = false
        /// The claims under which the turn is cancelled.
        var bearer: StreamBearer?
        /// The request's cache cursor, if it is not older than the current one.
        let asked: String?
        /// In seconds of the loop.
        let until: Int32
        var isChunked = true
        /// The stream's status as last sent to the reader.
        var status: StreamStatus?
        /// The reader continues when its socket has room.
        var waits = false

        init(_ name: StreamName, _ stream: StreamBuffer?, offset: Int, asked: String?, until: Int32) {
            self.name = name
            self.stream = stream
            self.offset = offset
            self.asked = asked
            self.until = until
        }
    }

    struct StreamMessages: Hashable {
        let namedBy: String?
    }

    private struct Place: Hashable {
        let offset: Int
        let messages: StreamMessages?
        let asked: String?
        let isChunked: Bool
    }

    /// Lives as long as the process.
    private unowned(unsafe) let loop: EventLoop
    private var readers: [Slot: Reader] = [:]
    private var slots: [StreamID: Set<Slot>] = [:]
    /// Readers whose stream does not exist yet.
    private var waiting: [StreamName: Set<Slot>] = [:]
    private var random = SystemRandomNumberGenerator()

    init(loop: EventLoop) {
        self.loop = loop
    }

    var count: Int { readers.count }

    func count(of stream: StreamID) -> Int { slots[stream]?.count ?? 0 }

    func all(of stream: StreamID) -> [(slot: Slot, reader: Reader)] {
        (slots[stream] ?? []).compactMap { slot in readers[slot].map { (slot, $0) } }
    }

    func add(_ reader: Reader, at slot: Slot, isChunked: Bool) {
        var reader = reader
        reader.isChunked = isChunked
        readers[slot] = reader
        guard let stream = reader.stream else {
            waiting[reader.name, default: []].insert(slot)
            return
        }
        slots[stream.id, default: []].insert(slot)
        if stream.isGone { loop.answers.end(slot) } else { send(to: [slot], of: stream) }
    }

    /// Notes that the hub ends the answer, not the client.
    func isEndedByHub(_ slot: Slot) { readers[slot]?.cancels = false }

    func remove(_ slot: Slot) -> Reader? {
        guard let reader = readers.removeValue(forKey: slot) else { return nil }
        waiting[reader.name]?.remove(slot)
        if waiting[reader.name]?.isEmpty == true { waiting[reader.name] = nil }
        guard let stream = reader.stream else { return reader }
        slots[stream.id]?.remove(slot)
        if slots[stream.id]?.isEmpty == true { slots[stream.id] = nil }
        return reader
    }

    func changed(_ stream: StreamBuffer) {
        if !stream.isGone, let waiting = waiting[stream.name] {
            let new = waiting.filter { readers[$0]?.known != stream.id }
            self.waiting[stream.name] = new.count < waiting.count ? waiting.subtracting(new) : nil
            for slot in new { readers[slot]?.stream = stream }
            if !new.isEmpty { slots[stream.id, default: []].formUnion(new) }
        }
        guard let slots = slots[stream.id] else { return }
        guard !stream.isGone else {
            for slot in slots { loop.answers.end(slot) }
            return
        }
        send(to: slots, of: stream)
    }

    func hasRoom(_ slot: Slot) {
        guard let stream = readers[slot]?.stream else { return }
        readers[slot]?.waits = false
        send(to: [slot], of: stream)
    }

    /// Called once a second: ends answers that have reached their time limit.
    func tick() {
        for (slot, reader) in readers where reader.until <= loop.second { loop.answers.end(slot) }
    }

    /// Sends each reader with room what it lacks; readers at one place share a frame.
    private func send(to slots: Set<Slot>, of stream: StreamBuffer) {
        var together: [Place: [Slot]] = [:]
        for slot in slots {
            guard let reader = readers[slot], !reader.waits else { continue }
            guard loop.delivery.hasRoom(slot, for: 0) else {
                readers[slot]?.waits = true
                loop.delivery.awaitRoom(slot)
                continue
            }
            let place = Place(
                offset: reader.offset, messages: reader.messages, asked: reader.asked, isChunked: reader.isChunked)
            together[place, default: []].append(slot)
        }
        for (place, slots) in together { send(to: slots, at: place, of: stream) }
    }

    private func send(to slots: [Slot], at place: Place, of stream: StreamBuffer) {
        guard let block = block(at: place, of: stream) else { return endLate(slots, at: place, of: stream) }
        let lacking = slots.filter { block.end > place.offset || readers[$0]?.status != block.status }
        guard !lacking.isEmpty else { return }
        if !block.bytes.isEmpty {
            loop.delivery.fanOut(Frame(body: block.bytes, isChunked: place.isChunked), to: lacking, except: nil)
        }
        for slot in lacking {
            readers[slot]?.offset = block.end
            readers[slot]?.status = block.status
            if block.status == nil {
                readers[slot]?.waits = true
                loop.delivery.awaitRoom(slot)
            } else if block.status?.ending != nil {
                loop.answers.end(slot)
            }
        }
    }

    /// Ends the answers of readers whose next byte is no longer stored (`keep: newest`). When they reconnect, a 410
    /// tells them so.
    private func endLate(_ slots: [Slot], at place: Place, of stream: StreamBuffer) {
        guard place.messages == nil, place.offset < stream.snapshot.start else { return }
        for slot in slots { loop.answers.end(slot) }
    }

    private func block(at place: Place, of stream: StreamBuffer) -> StreamEvents.Block? {
        if let messages = place.messages {
            return StreamEvents.messages(of: stream, from: place.offset, namedBy: messages.namedBy)
        }
        let cursor = CacheCursor.nextCursor(at: loop.now().unix, after: place.asked, random: random.next())
        return StreamEvents.block(of: stream, from: place.offset, cursor: cursor)
    }
}
