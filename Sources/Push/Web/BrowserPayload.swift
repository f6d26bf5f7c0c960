import Wire

extension AlertPayload {
    /// The message for the service worker of a page, before encryption: an object with the members that
    /// `ServiceWorkerRegistration.showNotification` accepts, and `data`.
    func browserBytes(tag: String) -> [UInt8] {
        JSONWriter.object { message in
            if case .text(let text) = title { message.writeMember("title", text) }
            if case .text(let text) = body { message.writeMember("body", text) }
            message.writeMember("tag", tag)
            if let image { message.writeMember("image", image) }
            if let badge { message.writeMember("badge", max(0, badge)) }
            if let threadID { message.writeMember("thread", threadID) }
            message.object("data") { data in
                for field in self.data { data.writeMember(field.name, json: field.value) }
            }
        }
    }
}

/// Rendered messages to browsers.
enum BrowserPayload {
    /// Returns the same message with half of its text; nil if there is nothing more to cut.
    static func shortened(_ payload: [UInt8]) -> [UInt8]? {
        let message = JSON(trusted: payload[...])
        guard let body = message["body"]?.string, body.count > 1 else { return nil }
        return JSONWriter.object { whole in
            message.forEachMember { member in
                if member.isNamed("body") {
                    whole.writeMember("body", body.prefix(body.count / 2) + "…")
                } else {
                    whole.writeMember(member)
                }
            }
        }
    }
}
