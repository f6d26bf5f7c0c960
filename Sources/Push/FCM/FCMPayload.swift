import Hub
import Wire

/// How alerts look on Android.
package struct AndroidStyle: Sendable, Equatable {
    /// The notification channel of the app (Android 8); nil for the app's default.
    package var channel: String?
    /// Whether the app itself shows them: it is sent data alone, and is woken for it.
    package var isDataOnly = false

    package init() {}
}

extension AlertPayload {
    /// The message as FCM takes it, without its target (Firebase, "REST Resource: projects.messages"). Values of `data` are texts, whatever
    /// they are elsewhere.
    func messageBytes(tag: String, _ style: AndroidStyle) -> [UInt8] {
        JSONWriter.object { message in
            if !style.isDataOnly {
                message.object("notification") { notification in
                    if case .text(let text) = title { notification.member("title", text) }
                    if case .text(let text) = body { notification.member("body", text) }
                    if let image { notification.member("image", image) }
                }
                message.object("android") { android in
                    android.object("notification") { notification in
                        notification.member("tag", tag)
                        if let channel = style.channel { notification.member("channel_id", channel) }
                        if let sound { notification.member("sound", sound) }
                        if let badge, badge > 0 { notification.member("notification_count", badge) }
                        title?.writeKey("title", into: &notification)
                        body?.writeKey("body", into: &notification)
                    }
                }
            }
            message.object("data") { data in
                if style.isDataOnly { writeText(into: &data, tag: tag) }
                if let subtitle { subtitle.writeData("subtitle", into: &data) }
                if let threadID { data.member("threadId", threadID) }
                if let category { data.member("category", category) }
                for field in self.data { data.member(data: field) }
            }
        }
    }

    private func writeText(into data: inout JSONWriter, tag: String) {
        title?.writeData("title", into: &data)
        body?.writeData("body", into: &data)
        if let image { data.member("image", image) }
        if let sound { data.member("sound", sound) }
        if let badge { data.member("badge", String(max(0, badge))) }
        data.member("tag", tag)
    }
}

extension JSONWriter {
    /// A member of `data`: a text stays one, anything else is its JSON. Names that FCM keeps for itself are left out (Firebase: "from",
    /// "message_type", and what begins with "google." or "gcm.").
    fileprivate mutating func member(data field: PayloadField) {
        let name = field.name
        guard !["from", "message_type", "image"].contains(name), !name.hasPrefix("google."), !name.hasPrefix("gcm.")
        else {
            return
        }
        let value = JSON(trusted: field.value[...])
        member(name, value.string ?? value.description)
    }
}

extension AlertText {
    /// A line of the app's own strings (`title_loc_key`, `title_loc_args`).
    fileprivate func writeKey(_ name: String, into notification: inout JSONWriter) {
        guard case .localized(let key, let arguments) = self else { return }
        notification.member(name + "_loc_key", key)
        if !arguments.isEmpty { notification.member(name + "_loc_args", arguments) }
    }

    /// The line among texts: with the arguments of a localized one as a JSON array.
    fileprivate func writeData(_ name: String, into data: inout JSONWriter) {
        switch self {
        case .text(let text): data.member(name, text)
        case .localized(let key, let arguments):
            data.member(name + "LocKey", key)
            let list = JSONWriter.object { $0.member("a", arguments) }
            data.member(name + "LocArgs", JSON(trusted: list[...])["a"]?.description ?? "[]")
        }
    }
}

extension ActivityPayload {
    /// The state of an activity as data for an app on Android, which shows it as a notification of its own (progress, or a Live Update of
    /// Android 16). All values are texts.
    func messageBytes(of activity: Name) throws(PayloadError) -> [UInt8] {
        if let contentState, contentState.kind != .object { throw PayloadError.noObject(key: "content-state") }
        let bytes = JSONWriter.object { message in
            message.object("data") { data in
                data.member("activityId", activity.text)
                data.member("event", event.rawValue)
                data.member("timestamp", String(timestamp))
                data.member("staleDate", String(staleDate))
                if let contentState { data.member("contentState", contentState.description) }
                if let alert { data.member("alert", alert.json.description) }
                if case .end(_, let dismissal?) = step { data.member("dismissalDate", String(dismissal)) }
            }
        }
        guard bytes.count <= PayloadLimit.fcm else {
            throw PayloadError.tooLarge(bytes: bytes.count, limit: PayloadLimit.fcm)
        }
        return bytes
    }
}
