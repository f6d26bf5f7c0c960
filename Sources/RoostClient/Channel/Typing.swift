public import Foundation
package import Wire

/// The users typing in a channel now, in the order in which they started.
public struct TypingSet: Sendable, Equatable {
    public let typists: [Typist]

    public init(typists: [Typist] = []) { self.typists = typists }
}

/// A user who is typing.
public struct Typist: Sendable, Equatable {
    /// The payload's `user_id`; nil if it has none.
    public let userID: String?
    /// The payload of the user's client, as the text of a JSON object.
    public let json: Data

    /// Decodes the payload of the user's client.
    public func decode<Payload: Decodable>(
        as type: Payload.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Payload {
        try decoder.roostDecode(type, from: json)
    }
}

/// The users typing, from the broadcasts `typing` and `typing_state`.
///
/// The hub ends typing by itself. In case that message is lost, or the server does not support typing, a user without a
/// report for `silence` is removed: no one types forever.
package struct TypingMap {
    /// The time that a user stays without a report: twice as long as at the hub, so that the hub comes first.
    package static let silence: Duration = .seconds(6)

    private struct Entry {
        let key: String
        var typist: Typist
        var heardAt: Moment
    }

    private var entries: [Entry] = []

    package init() {}

    package var set: TypingSet { TypingSet(typists: entries.map(\.typist)) }
    /// The time at which `removeSilent` removes a user; nil while no one is typing.
    package var nextDeadline: Moment? { entries.map(\.heardAt).min().map { $0 + Self.silence } }

    /// Applies a `typing` broadcast.
    ///
    /// - Returns: whether the set has changed.
    package mutating func applyTyping(_ payload: JSON, at now: Moment) -> Bool {
        guard let isTyping = payload["typing"]?.bool else { return false }
        return reportsChange { $0.applyTypist(payload, isTyping, now) }
    }

    /// Applies a `typing_state` broadcast, which lists all who type.
    ///
    /// - Returns: whether the set has changed.
    package mutating func applyState(_ payload: JSON, at now: Moment) -> Bool {
        reportsChange { map in
            map.entries = []
            for typist in payload["typing"]?.elements ?? [] { map.applyTypist(typist, true, now) }
        }
    }

    /// Removes all users, because the channel is lost: typing never outlives a connection.
    ///
    /// - Returns: whether the set has changed.
    package mutating func clear() -> Bool { reportsChange { $0.entries = [] } }

    /// Removes users without a report for too long.
    ///
    /// - Returns: whether the set has changed.
    package mutating func removeSilent(_ now: Moment) -> Bool {
        reportsChange { map in map.entries.removeAll { $0.heardAt + Self.silence <= now } }
    }

    private mutating func applyTypist(_ payload: JSON, _ isTyping: Bool, _ now: Moment) {
        let userID = payload["user_id"].flatMap { $0.isNull ? nil : $0.string ?? $0.description }
        let key = userID.map { "user " + $0 } ?? Self.anonymousKey(of: payload)
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

    /// A key for a typist without a `user_id`: the payload without `typing`, regardless of the order of its members.
    private static func anonymousKey(of payload: JSON) -> String {
        var words: [String] = []
        payload.forEachMember { member in
            if !member.isNamed("typing") { words.append("\(member.key)=\(member.value)") }
        }
        return words.sorted().joined(separator: "\u{0}")
    }

    private mutating func reportsChange(_ change: (inout TypingMap) -> Void) -> Bool {
        let before = set
        change(&self)
        return set != before
    }
}

/// Selects the app's calls of `typing` to send: the first one, one a second while they go on, and the stop.
package struct TypingThrottle {
    /// The shortest time between two starts. The hub passes on one a second, and ends typing after 3 s without a
    /// report.
    package static let interval: Duration = .seconds(1)

    private var sentAt: Moment?
    private var isTyping = false

    package init() {}

    /// Whether to send this call.
    package mutating func shouldSend(_ isTyping: Bool, at now: Moment) -> Bool {
        guard isTyping else {
            defer { reset() }
            return self.isTyping
        }
        if self.isTyping, let sentAt, now - sentAt < Self.interval { return false }
        self.isTyping = true
        sentAt = now
        return true
    }

    /// Forgets earlier calls: the channel is lost, and the hub has ended the typing.
    package mutating func reset() {
        isTyping = false
        sentAt = nil
    }
}
