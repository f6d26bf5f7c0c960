public import Foundation
import Synchronization
import Wire

/// Writes a stream over the client's connection. Created by `RoostStream.writer`; callable from any thread.
///
/// Each append is numbered and sent again after a loss until the hub has stored it, so none is lost or duplicated.
/// Appends that are not stored yet are lost with the writer: end it with ``close()``, or ``flush()`` it.
public final class StreamWriter: Sendable {
    private let channel: Channel
    private let id: WriterID
    private let progress = StreamProgress()
    /// Larger pieces are split, so that each fits into one message to the hub.
    private static let partBytes = 65_536

    init(_ channel: Channel, _ producer: String, _ epoch: Int) {
        self.channel = channel
        id = channel.core.nextID()
        channel.core.postCommand(.openWriter(channel.id, id, name: producer, epoch: epoch, progress))
    }

    deinit { channel.core.postCommand(.closeWriter(channel.id, id)) }

    /// The number of bytes of the stream when the hub last stored an append of this writer.
    public var keptOffset: Int { progress.end }

    /// Appends text. Returns once it is on its way or waits for the connection; 256 KiB may wait, beyond that it waits
    /// for room.
    ///
    /// Throws ``RoostError/streamCancelled(at:)`` once a reader has cancelled the stream: stop writing. After an error
    /// this writer can append nothing more: if the hub refused an append, that error is thrown once, and afterwards
    /// ``RoostError/ended(reason:)``. Later appends are not in the stream, so a writer does not continue by itself:
    /// correct what was refused, and create another one.
    public func append(_ text: String) async throws(RoostError) {
        var rest = Substring(text).utf8
        while !rest.isEmpty {
            var part = rest.prefix(Self.partBytes)
            // Never splits a UTF-8 character.
            while part.endIndex < rest.endIndex, rest[part.endIndex] & 0xC0 == 0x80 { part = part.dropLast() }
            try await sendOrder(.append(StreamPart(.text, Array(part))))
            rest = rest[part.endIndex...]
        }
    }

    /// Appends a message to a stream of JSON. Otherwise like `append(_:)` of text.
    public func append(message: some Encodable & Sendable) async throws(RoostError) {
        let json: Data
        do { json = try channel.core.configuration.encoder.encode(message) } catch {
            throw .encoding(String(describing: error))
        }
        try await sendOrder(.append(StreamPart(.messages, Array(json))))
    }

    /// Appends bytes to a stream that is neither text nor JSON. Otherwise like `append(_:)` of text.
    public func append(bytes: Data) async throws(RoostError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.partBytes)
            try await sendOrder(.append(StreamPart(.bytes, Array(part))))
            rest = rest[part.endIndex...]
        }
    }

    /// Returns once the hub has stored all earlier appends. Without a connection it waits until its task is cancelled.
    public func flush() async throws(RoostError) { try await sendOrder(.flush) }

    /// Ends the stream as complete. Returns its number of bytes once the hub has stored all of it.
    ///
    /// If the row of the end is refused (`streams.on_close`), it throws ``RoostError/refused(reason:)``, and the stream
    /// remains open.
    @discardableResult public func close() async throws(RoostError) -> Int {
        try await sendOrder(.close)
        return progress.end
    }

    private func sendOrder(_ order: WriterOrder) async throws(RoostError) {
        do throws(RoostError) {
            try await channel.core.callEngine(channel.id, .write(id, order))
        } catch .left {
            // The channel is gone; the writer has the reason.
            throw progress.failure ?? .left
        }
    }
}

/// A writer's progress, readable without waiting for the engine.
final class StreamProgress: Sendable {
    private let state = Mutex((end: 0, failure: RoostError?.none))

    var end: Int {
        get { state.withLock { $0.end } }
        set { state.withLock { $0.end = newValue } }
    }

    /// The reason why nothing can be written any more.
    var failure: RoostError? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }
}
