import DurableStreams
import Hub
import Streams
import Wire

/// Who reads streams as events on a loop, and up to where each has it.
///
/// A reader is an offset: whoever has room is sent all that it lacks, readers who lack the same share one frame, and nothing is kept
/// for those who have no room.
final class StreamReaders {
    struct Reader {
        let name: StreamName
        /// Nil while it is waited for.
        var stream: StreamBuffer?
        var offset: Int
        /// By the token it came with, for the operator.
        var user: Name?
        /// As plain events, and which member names one; nil for `live=sse`.
        var messages: StreamMessages?
        /// The generation that it does not want, while it waits for another.
        var known: StreamID?
        /// The turn is cancelled when its client closes the answer (`streams.routes` with `cancel`).
        var cancels = false
        /// As whom it is cancelled then.
        var bearer: StreamBearer?
        /// A cursor that is no older than the present.
        let asked: String?
        /// In seconds of the loop.
        let until: Int32
        var isChunked = true
        /// What it was told last of how the stream stands.
        var status: StreamStatus?
        /// It is asked again when its socket has room.
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
    /// Whose stream is not there yet.
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

    /// Its client has not closed the answer.
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

    /// Once a second: answers that have gone on for long enough.
    func tick() {
        for (slot, reader) in readers where reader.until <= loop.second { loop.answers.end(slot) }
    }

    /// What each lacks, where it has room; readers at one place share a frame.
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

    /// Ends the answers of readers whose next byte is not kept any more (`keep: newest`): when they come again they are told so, with 410.
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
