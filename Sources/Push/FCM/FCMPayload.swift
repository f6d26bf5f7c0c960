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
        let isShown = !style.isDataOnly && (title != nil || body != nil)
        return JSONWriter.object { message in
            if isShown {
                message.object("notification") { notification in
                    if case .text(let text) = title { notification.writeMember("title", text) }
                    if case .text(let text) = body { notification.writeMember("body", text) }
                    if let image { notification.writeMember("image", image) }
                }
                message.object("android") { android in
                    android.object("notification") { writeLook(into: &$0, tag: tag, style) }
                }
            }
            message.object("data") { data in
                // Each name is written once; the app's own members take precedence over ours.
                for (name, value) in texts(tag: tag, isShown: isShown)
                where !fields.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
                    data.writeMember(name, value)
                }
                for field in self.data where !Self.isReserved(field.name) && (field.name != "image" || !isShown) {
                    let value = JSON(trusted: field.value[...])
                    data.writeMember(field.name, value.string ?? value.description)
                }
            }
        }
    }

    private func writeLook(into notification: inout JSONWriter, tag: String, _ style: AndroidStyle) {
        notification.writeMember("tag", tag)
        if let channel = style.channel { notification.writeMember("channel_id", channel) }
        if let sound { notification.writeMember("sound", sound) }
        if let badge, badge > 0 { notification.writeMember("notification_count", badge) }
        title?.writeKey("title", into: &notification)
        body?.writeKey("body", into: &notification)
    }

    /// The members of an alert that go as data: all of them if the app shows it, otherwise those that Android has no place for.
    private func texts(tag: String, isShown: Bool) -> [(name: String, value: String)] {
        var texts: [(String, String)] = []
        if !isShown {
            texts += title?.data("title") ?? []
            texts += body?.data("body") ?? []
            if let sound { texts.append(("sound", sound)) }
            if let badge { texts.append(("badge", String(max(0, badge)))) }
            texts.append(("tag", tag))
        }
        texts += subtitle?.data("subtitle") ?? []
        if let threadID { texts.append(("threadId", threadID)) }
        if let category { texts.append(("category", category)) }
        return texts
    }

    /// Whether FCM reserves a name of `data` (Firebase: "from", "message_type", and names that begin with "google." or "gcm.").
    private static func isReserved(_ name: String) -> Bool {
        ["from", "message_type"].contains(name) || name.hasPrefix("google.") || name.hasPrefix("gcm.")
    }
}

extension AlertText {
    /// Writes a line from the app's own strings (`title_loc_key`, `title_loc_args`).
    fileprivate func writeKey(_ name: String, into notification: inout JSONWriter) {
        guard case .localized(let key, let arguments) = self else { return }
        notification.writeMember(name + "_loc_key", key)
        if !arguments.isEmpty { notification.writeMember(name + "_loc_args", arguments) }
    }

    /// The line as members of `data`; for a localized one the key, and the arguments as a JSON list.
    fileprivate func data(_ name: String) -> [(String, String)] {
        switch self {
        case .text(let text): return [(name, text)]
        case .localized(let key, let arguments):
            var list: [UInt8] = [UInt8(ascii: "[")]
            for (index, argument) in arguments.enumerated() {
                if index > 0 { list.append(UInt8(ascii: ",")) }
                JSONString.encode(argument, into: &list)
            }
            list.append(UInt8(ascii: "]"))
            return [(name + "LocKey", key), (name + "LocArgs", String(decoding: list, as: UTF8.self))]
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
