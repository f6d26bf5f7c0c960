import Hub
import Streams
import Synchronization
import TestSupport
import Testing
import Wire

/// Streams of which a test says itself what they have.
final class StreamShelf: StreamService {
    let isShared: Bool
    private let state = Mutex<(buffers: [StreamName: StreamBuffer], watches: [StreamName: Int])>(([:], [:]))

    init(isShared: Bool = false) { self.isShared = isShared }

    @discardableResult func add(
        _ name: String, _ contentType: String = "text/plain", id: UInt64 = 7
    ) throws -> StreamBuffer {
        let name = try #require(StreamName(name))
        let buffer = StreamBuffer(
            id: StreamID(id), name: name, configuration: StreamConfiguration(contentType: contentType))
        state.withLock { $0.buffers[name] = buffer }
        return buffer
    }

    func remove(_ buffer: StreamBuffer) {
        state.withLock { $0.buffers[buffer.name] = nil }
        _ = buffer.setGone()
    }

    func watches(_ name: String) -> Int {
        state.withLock { state in StreamName(name).flatMap { state.watches[$0] } ?? 0 }
    }

    /// Requests are actions of the hub's, which tests look at.
    func submitRequest(
        _ request: StreamRequest, on name: StreamName, answer: @escaping @Sendable (StreamAnswer) -> Void
    ) {}
    func buffer(of name: StreamName) -> StreamBuffer? { state.withLock { $0.buffers[name] } }

    func watchStream(_ name: StreamName, by loop: Int) -> StreamBuffer? {
        state.withLock { state in
            state.watches[name, default: 0] += 1
            return state.buffers[name]
        }
    }

    func unwatchStream(_ name: StreamName, by loop: Int) { state.withLock { $0.watches[name, default: 0] -= 1 } }
}

extension Stage {
    /// What happens to a stream, and what members are sent of it.
    func append(_ text: String, to stream: StreamBuffer) throws -> [String] {
        _ = stream.append(Array(text.utf8))
        return try news(of: stream)
    }

    func news(of stream: StreamBuffer) throws -> [String] { try watch { $0.streamChanged(stream) } }

    func set(_ status: StreamStatus, of stream: StreamBuffer) throws -> [String] {
        _ = stream.setStatus(status)
        return try news(of: stream)
    }
}
