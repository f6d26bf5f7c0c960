public import Foundation
import Synchronization
import Wire

/// Writes a stream over the client's connection. `RoostStream.writer` makes one; all of it may be called from any thread.
///
/// Each append is numbered and is sent again after a loss until the hub has kept it, so none is lost and none is there twice. What
/// has not been kept yet is lost with the writer: end it with ``close()``, or ``flush()`` it.
public final class StreamWriter: Sendable {
    private let channel: Channel
    private let id: WriterID
    private let progress = StreamProgress()
    /// Larger pieces are appended in parts, so that each fits what the hub takes in one message.
    private static let partBytes = 65_536

    init(_ channel: Channel, _ producer: String, _ epoch: Int) {
        self.channel = channel
        id = channel.core.nextID()
        channel.core.post(.openWriter(channel.id, id, name: producer, epoch: epoch, progress))
    }

    deinit { channel.core.post(.closeWriter(channel.id, id)) }

    /// How many bytes the stream had when the hub last kept something of this writer.
    public var keptOffset: Int { progress.end }

    /// Appends text. Returns as soon as it is on its way or waits for the connection; 256 KiB may, and then it waits for room.
    ///
    /// It throws ``RoostError/streamCancelled(at:)`` once a reader has cancelled the stream: stop writing. After an error nothing
    /// can be appended by this writer any more: where the hub refused an append, this is thrown once, and from then on
    /// ``RoostError/ended(reason:)``. What was appended behind it is not in the stream, so a writer does not go on by itself:
    /// mend what was refused, and make another one.
    public func append(_ text: String) async throws(RoostError) {
        var rest = Substring(text).utf8
        while !rest.isEmpty {
            var part = rest.prefix(Self.partBytes)
            // A character of UTF-8 stays whole.
            while part.endIndex < rest.endIndex, rest[part.endIndex] & 0xC0 == 0x80 { part = part.dropLast() }
            try await write(.append(StreamPart(.text, Array(part))))
            rest = rest[part.endIndex...]
        }
    }

    /// Appends a message to a stream of JSON. In all else it is `append(_:)` of text.
    public func append(message: some Encodable & Sendable) async throws(RoostError) {
        let json: Data
        do { json = try channel.core.configuration.encoder.encode(message) } catch {
            throw .encoding(String(describing: error))
        }
        try await write(.append(StreamPart(.messages, Array(json))))
    }

    /// Appends bytes to a stream that is neither text nor JSON. In all else it is `append(_:)` of text.
    public func append(bytes: Data) async throws(RoostError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.partBytes)
            try await write(.append(StreamPart(.bytes, Array(part))))
            rest = rest[part.endIndex...]
        }
    }

    /// Returns when the hub has kept all that was appended before. Without a connection it waits, until its task is cancelled.
    public func flush() async throws(RoostError) { try await write(.flush) }

    /// Ends the stream: it is complete. Returns how many bytes it has, when the hub has kept all of it.
    ///
    /// Where the row of the end is refused (`streams.on_close`) it throws ``RoostError/refused(reason:)``, and the stream is open
    /// still.
    @discardableResult public func close() async throws(RoostError) -> Int {
        try await write(.close)
        return progress.end
    }

    private func write(_ order: WriterOrder) async throws(RoostError) {
        do throws(RoostError) {
            try await channel.core.call(channel.id, .write(id, order))
        } catch .left {
            // The channel is gone; the writer knows why.
            throw progress.failure ?? .left
        }
    }
}

/// How far a writer has come, to be read without waiting for the engine.
final class StreamProgress: Sendable {
    private let state = Mutex((end: 0, failure: RoostError?.none))

    var end: Int {
        get { state.withLock { $0.end } }
        set { state.withLock { $0.end = newValue } }
    }

    /// Why nothing can be written any more.
    var failure: RoostError? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }
}
