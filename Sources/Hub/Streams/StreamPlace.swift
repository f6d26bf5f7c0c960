import Streams
import Wire

/// How far a member has the stream of its channel.
struct StreamPlace {
    /// Of the stream that the offset is of; nil before it was told of any.
    var id: StreamID?
    var offset = 0
    /// The generation that it knows, and waits for another than.
    let known: StreamID?
    /// A generation that gave way to the next before the member was shown all of it: it is shown the rest first.
    var rest: StreamBuffer?
    /// What it was told last of how the stream stands.
    var status: StreamStatus?
    /// Milliseconds between two of its frames.
    let interval: Int64
    /// When the next may come, in monotonic milliseconds.
    var nextAt = Int64.min
    /// Its socket has no room now, or there is more for it as soon as it has.
    var waits = false

    init(_ request: StreamRequestOfJoin) {
        interval = request.interval
        id = request.id
        offset = request.offset
        known = request.known
    }

    /// Whether it has not been told all.
    func lacks(_ snapshot: StreamSnapshot) -> Bool {
        known != snapshot.id && (id != snapshot.id || offset < snapshot.end || status != snapshot.status)
    }
}

/// `config.stream` of a join: where the client is in the stream, and how often it wants to hear of it.
package struct StreamRequestOfJoin: Sendable {
    let id: StreamID?
    let offset: Int
    /// `after`: a generation that the client has done with.
    let known: StreamID?
    let interval: Int64

    /// As an eye takes a growing text for flowing, at a quarter of the frames that tokens would take.
    private static let standard: Int64 = 40
    private static let most: Int64 = 500

    private init(id: StreamID?, offset: Int, known: StreamID?, interval: Int64) {
        self.id = id
        self.offset = offset
        self.known = known
        self.interval = interval
    }

    /// The same, from where its client is.
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

/// What a channel has where it is a stream's.
package final class ChannelStream {
    let name: StreamName
    /// Nil while there is none.
    var buffer: StreamBuffer?
    var watchers: [Slot: Membership] = [:]

    init(_ name: StreamName) { self.name = name }

    private static let prefix = ChannelKey.prefix + "stream:"

    /// What its members are told comes by broadcasts of this event.
    static let event = "stream"

    /// Whether a message would pass for one of the hub's.
    package static func isReserved(event: String, topic: String) -> Bool {
        event.hasSameBytes(as: Self.event) && isOne(topic)
    }

    static func isOne(_ topic: String) -> Bool { topic.utf8.starts(with: prefix.utf8) }

    /// Nil where the topic has none.
    static func name(of topic: String) -> StreamName? {
        isOne(topic) ? StreamName(String(Substring(topic.utf8.dropFirst(prefix.utf8.count)))) : nil
    }

    static func key(_ name: StreamName) -> ChannelKey { ChannelKey(topic: prefix + name.text, isPrivate: true) }
}
