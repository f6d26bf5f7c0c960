import Wire

extension AlertPayload {
    /// The message as the service worker of a page reads it, before it is encrypted: an object whose members are those that
    /// `ServiceWorkerRegistration.showNotification` takes, and `data`.
    func browserBytes(tag: String) -> [UInt8] {
        JSONWriter.object { message in
            if case .text(let text) = title { message.member("title", text) }
            if case .text(let text) = body { message.member("body", text) }
            message.member("tag", tag)
            if let image { message.member("image", image) }
            if let badge { message.member("badge", max(0, badge)) }
            if let threadID { message.member("thread", threadID) }
            message.object("data") { data in
                for field in self.data { data.member(field.name, json: field.value) }
            }
        }
    }
}
