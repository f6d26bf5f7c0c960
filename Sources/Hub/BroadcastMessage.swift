package import Wire

/// A message to a channel, in the form in which it arrived.
package enum BroadcastMessage: Sendable {
    /// The payload of a text `broadcast` event, passed on as it is.
    case text([UInt8])
    case user(UserBroadcast)
}

/// The sender of a message, if it wants no echo.
package struct MessageSender: Sendable, Equatable {
    package let member: MemberID
    /// Its slot when it sent the message; meaningless here for a member of another hub.
    let slot: Slot

    init(member: MemberID, slot: Slot) {
        self.member = member
        self.slot = slot
    }

    package init(elsewhere member: MemberID) { self.init(member: member, slot: -1) }
}

extension BroadcastMessage {
    /// Nil if a version cannot carry the message: raw bytes in version 1; in version 2 raw bytes with a name too long
    /// for a binary frame.
    func frame(_ version: ProtocolVersion, in channel: LocalChannel, isBehindPosition: Bool = false) -> Frame? {
        let frames = channel.frames(version, isBehindPosition: isBehindPosition)
        switch self {
        case .text(let payload): return frames.push("broadcast", payload: payload)
        case .user(let user):
            if version == .v2, let frame = ServerFrame.userBroadcast(user, topic: channel.key.topic) { return frame }
            return user.textPayload().map { frames.push("broadcast", payload: $0) } ?? frames.rawBroadcast(user)
        }
    }

    /// The application's name for the event.
    var event: String? {
        switch self {
        case .text(let payload): JSON(trusted: payload[...])["event"]?.string
        case .user(let user): user.event
        }
    }

    /// The maximum size of a message that is inspected: what clients report about themselves is short.
    static let mostSignBytes = 4096

    /// Returns the payload of a short message of this event, if it is a JSON object.
    func payload(ofEvent name: String) -> JSON? {
        let payload: JSON?
        switch self {
        case .text(let whole):
            guard whole.count <= Self.mostSignBytes else { return nil }
            let message = JSON(trusted: whole[...])
            guard message["event"]?.string?.hasSameBytes(as: name) == true else { return nil }
            payload = message["payload"]
        case .user(let user):
            guard user.encoding == .json, user.payload.count <= Self.mostSignBytes,
                user.event.hasSameBytes(as: name)
            else { return nil }
            do { payload = try JSON(parsing: user.payload) } catch { return nil }
        }
        return payload?.kind == .object ? payload : nil
    }
}

extension JSON {
    /// Whether all members of an object are expected.
    func hasOnlyMembers(where isExpected: (Member) -> Bool) -> Bool {
        var hasOnly = true
        forEachMember { if hasOnly, !isExpected($0) { hasOnly = false } }
        return hasOnly
    }
}
