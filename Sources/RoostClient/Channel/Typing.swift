public import Foundation
package import Wire

/// Who is typing in a channel now, in the order in which they began.
public struct TypingSet: Sendable, Equatable {
    public let typists: [Typist]

    public init(typists: [Typist] = []) { self.typists = typists }
}

/// Somebody who is typing.
public struct Typist: Sendable, Equatable {
    /// The payload's `user_id`; nil where it has none.
    public let userID: String?
    /// What the typist's client sent, as the text of a JSON object.
    public let json: Data

    /// Reads what the typist's client sent.
    public func decode<Payload: Decodable>(
        as type: Payload.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Payload {
        try decoder.roostDecode(type, from: json)
    }
}

/// Who is typing, from the broadcasts `typing` and `typing_state`.
///
/// The hub ends each typist by itself. Where that message is lost, or the server knows nothing of typing, a typist who has
/// said nothing for `silence` is removed: nobody types forever.
package struct TypingMap {
    /// How long a typist stays without a word: twice as long as the hub waits, so that the hub comes first.
    package static let silence: Duration = .seconds(6)

    private struct Entry {
        let key: String
        var typist: Typist
        var heardAt: Moment
    }

    private var entries: [Entry] = []

    package init() {}

    package var set: TypingSet { TypingSet(typists: entries.map(\.typist)) }
    /// When `tick` removes somebody; nil while nobody types.
    package var nextDeadline: Moment? { entries.map(\.heardAt).min().map { $0 + Self.silence } }

    /// Takes a `typing` broadcast.
    ///
    /// - Returns: whether the set is another now.
    package mutating func heard(_ payload: JSON, at now: Moment) -> Bool {
        guard let isTyping = payload["typing"]?.bool else { return false }
        return update { $0.apply(payload, isTyping, now) }
    }

    /// Takes a `typing_state` broadcast, which lists all who type.
    ///
    /// - Returns: whether the set is another now.
    package mutating func state(_ payload: JSON, at now: Moment) -> Bool {
        update { map in
            map.entries = []
            for typist in payload["typing"]?.elements ?? [] { map.apply(typist, true, now) }
        }
    }

    /// Removes everybody, because the channel is lost: typing never outlives a connection.
    ///
    /// - Returns: whether the set is another now.
    package mutating func clear() -> Bool { update { $0.entries = [] } }

    /// Removes those who have been silent for too long.
    ///
    /// - Returns: whether the set is another now.
    package mutating func tick(_ now: Moment) -> Bool {
        update { map in map.entries.removeAll { $0.heardAt + Self.silence <= now } }
    }

    private mutating func apply(_ payload: JSON, _ isTyping: Bool, _ now: Moment) {
        let userID = payload["user_id"].flatMap { $0.isNull ? nil : $0.string ?? $0.description }
        let key = userID.map { "user " + $0 } ?? Self.words(of: payload)
        let index = entries.firstIndex { $0.key == key }
        guard isTyping else {
            if let index { entries.remove(at: index) }
            return
        }
        let typist = Typist(userID: userID, json: Data(payload.bytes))
        if let index {
            entries[index].typist = typist
            entries[index].heardAt = now
        } else {
            entries.append(Entry(key: key, typist: typist, heardAt: now))
        }
    }

    /// A name for a typist without a `user_id`: the payload without `typing`, whatever the order of its keys.
    private static func words(of payload: JSON) -> String {
        var words: [String] = []
        payload.forEachMember { member in
            if !member.isNamed("typing") { words.append("\(member.key)=\(member.value)") }
        }
        return words.sorted().joined(separator: "\u{0}")
    }

    private mutating func update(_ change: (inout TypingMap) -> Void) -> Bool {
        let before = set
        change(&self)
        return set != before
    }
}

/// Decides which of the app's calls of `typing` are sent: the first, one a second while they go on, and the stop.
package struct TypingThrottle {
    /// The shortest time between two starts. The hub passes on one a second, and ends a typist after 3 s of silence.
    package static let interval: Duration = .seconds(1)

    private var sentAt: Moment?
    private var isTyping = false

    package init() {}

    /// Whether this call is to be sent.
    package mutating func says(_ isTyping: Bool, at now: Moment) -> Bool {
        guard isTyping else {
            defer { reset() }
            return self.isTyping
        }
        if self.isTyping, let sentAt, now - sentAt < Self.interval { return false }
        self.isTyping = true
        sentAt = now
        return true
    }

    /// Forgets what was sent: the channel is lost, and the hub has ended our typing.
    package mutating func reset() {
        isTyping = false
        sentAt = nil
    }
}
