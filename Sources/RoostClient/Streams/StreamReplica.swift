import Foundation
import Synchronization

/// The content of a channel's stream that has arrived so far. Callable from any thread: the client's engine adds to it,
/// sequences read it.
///
/// All sequences of a channel share it, and each of them is an offset into it. So a slow consumer costs nothing, and a
/// late one misses nothing: the stream itself waits for them, within the bound of the channel's configuration.
final class StreamReplica: Sendable {
    struct Content {
        /// Counts the streams that have begun here.
        var generation = 0
        var id = ""
        var form = StreamForm.text
        var bytes: [UInt8] = []
        var state = StreamState.open
        var end: StreamEnd?
    }

    private let content = Mutex(Content())

    func applyNews(_ news: StreamNews) {
        content.withLock { content in
            if news.begins { content = Content(generation: content.generation + 1, id: news.id) }
            content.form = news.form ?? content.form
            content.bytes += news.bytes
            content.state = news.state ?? content.state
            content.end = news.end ?? content.end
        }
    }

    func readContent<Value: Sendable>(_ body: (Content) -> Value) -> Value { content.withLock { body($0) } }
}

/// The position of one sequence in a stream.
final class StreamReadPosition: Sendable {
    private struct Place {
        var generation = 0
        var offset = 0
        var state: StreamState?
        /// The text of this stream so far, if the sequence yields all of it each time.
        var text = ""
        var isOver = false
    }

    /// The result of a look into the replica.
    enum Look<Value: Sendable>: Sendable {
        case value(Value)
        /// Nothing new; look again when something has arrived.
        case nothing
        /// The end was reported already.
        case over
    }

    private let place = Mutex(Place())

    /// A stream that was deleted before a sequence is created is skipped: the consumer waits for the next one.
    init(_ replica: StreamReplica) {
        let passed = replica.readContent { $0.end?.reason == .deleted ? $0.generation : 0 }
        place.withLock { place in
            place.generation = passed
            place.offset = .max
        }
    }

    /// The next piece.
    func nextUpdate(_ replica: StreamReplica) -> Look<StreamUpdate> {
        place.withLock { place in
            if place.isOver { return .over }
            return replica.readContent { Self.nextUpdate($0, &place) }
        }
    }

    private static func nextUpdate(_ content: StreamReplica.Content, _ place: inout Place) -> Look<StreamUpdate> {
        guard content.generation == place.generation else {
            place = Place(generation: content.generation)
            return .value(.begins(id: content.id))
        }
        if place.offset < content.bytes.count { return .value(nextPiece(content, &place)) }
        guard place.offset == content.bytes.count, content.generation > 0 else { return .nothing }
        if let end = content.end {
            place.isOver = true
            return .value(.ended(end))
        }
        guard content.state != place.state else { return .nothing }
        place.state = content.state
        return .value(.state(content.state))
    }

    private static func nextPiece(_ content: StreamReplica.Content, _ place: inout Place) -> StreamUpdate {
        let rest = content.bytes[place.offset...]
        switch content.form {
        case .text:
            place.offset = content.bytes.count
            return .text(String(decoding: rest, as: UTF8.self))
        case .bytes:
            place.offset = content.bytes.count
            return .bytes(Data(rest))
        case .messages:
            let message = rest.prefix { $0 != 0x0A }
            place.offset = message.endIndex + 1
            return .message(StreamedMessage(json: Data(message)))
        }
    }

    /// The whole text, if it has changed since the last time.
    func nextText(_ replica: StreamReplica) -> Look<StreamText> {
        place.withLock { place in
            if place.isOver { return .over }
            return replica.readContent { Self.nextText($0, &place) }
        }
    }

    private static func nextText(_ content: StreamReplica.Content, _ place: inout Place) -> Look<StreamText> {
        let begins = content.generation != place.generation
        if begins { place = Place(generation: content.generation) }
        guard place.offset <= content.bytes.count, content.generation > 0 else { return .nothing }
        let rest = content.bytes[place.offset...]
        guard begins || !rest.isEmpty || content.state != place.state || content.end != nil else { return .nothing }
        if content.form == .text { place.text += String(decoding: rest, as: UTF8.self) }
        place.offset = content.bytes.count
        place.state = content.state
        place.isOver = content.end != nil
        return .value(StreamText(id: content.id, text: place.text, state: content.state, end: content.end))
    }
}

extension Mailbox<Void> {
    /// Looks for a value each time the buffer signals news, until there is one. Returns nil at the end, and in a
    /// cancelled task.
    ///
    /// - Parameter lease: held while the consumer may still wait.
    func awaitValue<Value>(
        _ lease: Lease, _ look: () -> StreamReadPosition.Look<Value>
    ) async throws(RoostError) -> Value? {
        while !Task.isCancelled {
            switch look() {
            case .value(let value): return withExtendedLifetime(lease) { value }
            case .over: return nil
            case .nothing: if try await next() == nil { return nil }
            }
        }
        return nil
    }
}
