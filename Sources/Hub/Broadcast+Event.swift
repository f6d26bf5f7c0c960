import Wire

extension JSON {
    /// Whether all members of an object are such.
    func hasOnlyMembers(where isExpected: (Member) -> Bool) -> Bool {
        var hasOnly = true
        forEachMember { if hasOnly, !isExpected($0) { hasOnly = false } }
        return hasOnly
    }
}

extension Broadcast {
    /// What a client says about its own doings is short. Longer messages are not looked into.
    static let mostSignBytes = 4096

    /// The payload of a short message of this event, if it is a JSON object.
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
