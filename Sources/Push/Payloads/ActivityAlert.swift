package import Wire

/// What a Live Activity says aloud when it is updated: a title, a body, a sound.
package struct ActivityAlert: Sendable {
    /// As it is sent, to the byte.
    package let json: JSON

    package init(title: String, body: String, sound: String? = "default") {
        var alert = ObjectWriter()
        alert.add("title", title)
        alert.add("body", body)
        if let sound { alert.add("sound", sound) }
        json = JSON(trusted: alert.bytes[...])
    }

    /// A caller's alert. Title and body are texts, or objects with `loc-key` and `loc-args` (Apple: "Starting and
    /// updating Live Activities with ActivityKit push notifications").
    package init(checking json: JSON) throws(PayloadError) {
        func isLine(_ value: JSON?) -> Bool {
            value?.kind == .string || (value?.kind == .object && value?["loc-key"]?.kind == .string)
        }
        guard json.kind == .object, isLine(json["title"]), isLine(json["body"]) else { throw PayloadError.badAlert }
        self.json = json
    }
}
