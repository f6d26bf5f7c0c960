import Streams
import Wire

/// A member's position in the stream of its channel.
struct StreamPlace {
    /// The generation that the offset belongs to; nil before the member was told of any.
    var id: StreamID?
    var offset = 0
    /// A generation that the client already knows; it waits for a different one.
    let known: StreamID?
    /// A generation that was replaced before the member was sent all of it; the rest is sent first.
    var rest: StreamBuffer?
    /// The status that the member was last told.
    var status: StreamStatus?
    /// Milliseconds between two of its frames.
    let interval: Int64
    /// When the next frame may be sent, in monotonic milliseconds.
    var nextAt = Int64.min
    /// Its socket has no room now, or there is more for it as soon as it has.
    var waits = false

    init(_ request: StreamRequestOfJoin) {
        interval = request.interval
        id = request.id
        offset = request.offset
        known = request.known
    }

    /// Whether it has not been told everything.
    func lacks(_ snapshot: StreamSnapshot) -> Bool {
        known != snapshot.id && (id != snapshot.id || offset < snapshot.end || status != snapshot.status)
    }
}

/// The `config.stream` of a join: the client's position in the stream, and how often it wants news.
package struct StreamRequestOfJoin: Sendable {
    let id: StreamID?
    let offset: Int
    /// `after`: a generation that the client is done with.
    let known: StreamID?
    let interval: Int64

    /// Text that grows at this pace looks fluent, at a quarter of the frames that sending each token would take.
    private static let standard: Int64 = 40
    private static let most: Int64 = 500

    private init(id: StreamID?, offset: Int, known: StreamID?, interval: Int64) {
        self.id = id
        self.offset = offset
        self.known = known
        self.interval = interval
    }

    /// Returns the same request, starting at the client's position.
    func resumed(at position: EventPosition.Stream) -> StreamRequestOfJoin {
        StreamRequestOfJoin(id: StreamID(position.id), offset: position.offset, known: known, interval: interval)
    }

    init(_ json: JSON?) {
        id = json?["id"]?.string.flatMap { StreamID($0) }
        known = json?["after"]?.string.flatMap { StreamID($0) }
        offset = id == nil ? 0 : max(0, json?["at"]?.int ?? 0)
        interval = json?["every_ms"]?.int.map { min(Self.most, max(0, Int64($0))) } ?? Self.standard
    }
}

/// The stream's part of a channel that is a stream's.
package final class ChannelStream {
    let name: StreamName
    /// Nil while the stream does not exist.
    var buffer: StreamBuffer?
    var watchers: [Slot: Membership] = [:]

    init(_ name: StreamName) { self.name = name }

    private static let prefix = ChannelKey.prefix + "stream:"

    /// The event of the broadcasts that carry news to members.
    static let event = "stream"

    /// Whether a message could be taken for one of the hub's.
    package static func isReserved(event: String, topic: String) -> Bool {
        event.hasSameBytes(as: Self.event) && isOne(topic)
    }

    static func isOne(_ topic: String) -> Bool { topic.utf8.starts(with: prefix.utf8) }

    /// Nil if the topic is not that of a stream with a valid name.
    static func name(of topic: String) -> StreamName? {
        isOne(topic) ? StreamName(String(Substring(topic.utf8.dropFirst(prefix.utf8.count)))) : nil
    }

    static func key(_ name: StreamName) -> ChannelKey { ChannelKey(topic: prefix + name.text, isPrivate: true) }
}
