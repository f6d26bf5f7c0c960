import Hub
import Wire

/// The body of a request to `messages:send`: the rendered message, with the device's token and what is known only on sending.
enum FCMMessage {
    /// In seconds: four weeks (Firebase, "Lifetime of a message").
    private static let longestLife: Int64 = 28 * 86_400

    /// Returns nil if the payload is not an object.
    static func body(of push: Push, at now: HubTime) -> [UInt8]? {
        guard case .device(let destination) = push.target else { return nil }
        let payload = JSON(trusted: push.payload[...])
        guard payload.kind == .object else { return nil }
        return JSONWriter.object { whole in
            whole.object("message") { message in
                message.writeMember("token", destination.token.text)
                var android: JSON?
                payload.forEachMember { member in
                    if member.isNamed("android") {
                        android = member.value
                    } else if !member.isNamed("token") {
                        message.writeMember(member.key, json: member.value.bytes)
                    }
                }
                message.object("android") { options in
                    options.writeMember("priority", push.priority == 10 ? "HIGH" : "NORMAL")
                    options.writeMember("ttl", "\(life(of: push, at: now))s")
                    if let collapseID = push.collapseID { options.writeMember("collapse_key", collapseID) }
                    android?.forEachMember { member in
                        if !Self.own.contains(where: { member.isNamed($0) }) {
                            options.writeMember(member.key, json: member.value.bytes)
                        }
                    }
                }
            }
        }
    }

    private static let own = ["priority", "ttl", "collapse_key"]

    /// The time that FCM keeps the message for a phone that is off, in seconds.
    private static func life(of push: Push, at now: HubTime) -> Int64 {
        push.expiration == 0 ? 0 : min(max(0, push.expiration - now.unix / 1000), longestLife)
    }
}
