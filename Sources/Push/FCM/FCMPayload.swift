import Hub
import Wire

/// The appearance of alerts on Android.
package struct AndroidStyle: Sendable, Equatable {
    /// The notification channel of the app (Android 8); nil for the app's default.
    package var channel: String?
    /// Whether the app itself shows alerts: it is sent only data, which wakes it.
    package var isDataOnly = false

    package init() {}
}

extension AlertPayload {
    /// The message for FCM, without its target (Firebase, "REST Resource: projects.messages"). Values of `data` are strings, whatever
    /// their type elsewhere.
    func messageBytes(tag: String, _ style: AndroidStyle) -> [UInt8] {
        JSONWriter.object { message in
            if !style.isDataOnly {
                message.object("notification") { notification in
                    if case .text(let text) = title { notification.writeMember("title", text) }
                    if case .text(let text) = body { notification.writeMember("body", text) }
                    if let image { notification.writeMember("image", image) }
                }
                message.object("android") { android in
                    android.object("notification") { notification in
                        notification.writeMember("tag", tag)
                        if let channel = style.channel { notification.writeMember("channel_id", channel) }
                        if let sound { notification.writeMember("sound", sound) }
                        if let badge, badge > 0 { notification.writeMember("notification_count", badge) }
                        title?.writeKey("title", into: &notification)
                        body?.writeKey("body", into: &notification)
                    }
                }
            }
            message.object("data") { data in
                if style.isDataOnly { writeText(into: &data, tag: tag) }
                if let subtitle { subtitle.writeData("subtitle", into: &data) }
                if let threadID { data.writeMember("threadId", threadID) }
                if let category { data.writeMember("category", category) }
                for field in self.data { data.writeMember(data: field) }
            }
        }
    }

    private func writeText(into data: inout JSONWriter, tag: String) {
        title?.writeData("title", into: &data)
        body?.writeData("body", into: &data)
        if let image { data.writeMember("image", image) }
        if let sound { data.writeMember("sound", sound) }
        if let badge { data.writeMember("badge", String(max(0, badge))) }
        data.writeMember("tag", tag)
    }
}

extension JSONWriter {
    /// Writes a member of `data`: a string stays a string, anything else becomes its JSON. Names reserved by FCM are left out
    /// (Firebase: "from", "message_type", and those that begin with "google." or "gcm.").
    fileprivate mutating func writeMember(data field: PayloadField) {
        let name = field.name
        guard !["from", "message_type", "image"].contains(name), !name.hasPrefix("google."), !name.hasPrefix("gcm.")
        else {
            return
        }
        let value = JSON(trusted: field.value[...])
        writeMember(name, value.string ?? value.description)
    }
}

extension AlertText {
    /// Writes a line from the app's own strings (`title_loc_key`, `title_loc_args`).
    fileprivate func writeKey(_ name: String, into notification: inout JSONWriter) {
        guard case .localized(let key, let arguments) = self else { return }
        notification.writeMember(name + "_loc_key", key)
        if !arguments.isEmpty { notification.writeMember(name + "_loc_args", arguments) }
    }

    /// Writes the line as a string; the arguments of a localized one as a JSON array.
    fileprivate func writeData(_ name: String, into data: inout JSONWriter) {
        switch self {
        case .text(let text): data.writeMember(name, text)
        case .localized(let key, let arguments):
            data.writeMember(name + "LocKey", key)
            let list = JSONWriter.object { $0.writeMember("a", arguments) }
            data.writeMember(name + "LocArgs", JSON(trusted: list[...])["a"]?.description ?? "[]")
        }
    }
}

extension ActivityPayload {
    /// The state of an activity as data for an Android app, which shows it as a notification of its own (progress, or a Live Update of
    /// Android 16). All values are strings.
    func messageBytes(of activity: Name) throws(PayloadError) -> [UInt8] {
        if let contentState, contentState.kind != .object { throw PayloadError.noObject(key: "content-state") }
        let bytes = JSONWriter.object { message in
            message.object("data") { data in
                data.writeMember("activityId", activity.text)
                data.writeMember("event", event.rawValue)
                data.writeMember("timestamp", String(timestamp))
                data.writeMember("staleDate", String(staleDate))
                if let contentState { data.writeMember("contentState", contentState.description) }
                if let alert { data.writeMember("alert", alert.json.description) }
                if case .end(_, let dismissal?) = step { data.writeMember("dismissalDate", String(dismissal)) }
            }
        }
        guard bytes.count <= PayloadLimit.fcm else {
            throw PayloadError.tooLarge(bytes: bytes.count, limit: PayloadLimit.fcm)
        }
        return bytes
    }
}
