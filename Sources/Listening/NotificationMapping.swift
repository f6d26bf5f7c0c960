package import Hub
import Wire

/// Maps the notifications of one Postgres channel (NOTIFY) to broadcasts whose topic and event their payload names.
package struct NotificationMapping: Sendable, Equatable {
    /// The channel as `pg_notify` takes it; case is kept.
    package let channel: String
    /// Without `realtime:`.
    let topic: TextTemplate
    let event: TextTemplate
    /// True if the policies on `realtime.messages` decide about membership.
    let isPrivate: Bool

    /// The channels that the broadcasts may go to.
    package var reach: ChannelPattern {
        var literals = [""]
        for piece in topic.pieces {
            switch piece {
            case .text(let text): literals[literals.count - 1] += text
            case .variable: literals.append("")
            }
        }
        return ChannelPattern(TopicPattern(literals: literals), isPrivate: isPrivate)
    }

    /// The broadcast for a notification.
    package func broadcast(of payload: NotificationPayload) throws(UndeliverableNotification)
        -> (ChannelKey, BroadcastMessage)
    {
        let topic = try payload.text(of: topic)
        // No text of Postgres can contain a NUL, so policies cannot be evaluated for such a topic.
        guard !topic.isEmpty, !topic.utf8.contains(0) else { throw .topic }
        let event = try payload.text(of: event)
        let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate)
        guard !event.isEmpty, !ActivitySummary.isReserved(event: event, topic: key.topic) else { throw .event }
        let message = JSONWriter.object { message in
            message.writeMember("event", event)
            message.writeMember("payload", json: payload.object)
            message.writeMember("type", "broadcast")
        }
        return (key, .text(message))
    }
}

/// The payload of a notification, parsed once for all its mappings.
package struct NotificationPayload {
    /// The broadcast's payload, a JSON object as clients need it: the notification's own object, or an object with its
    /// JSON value or text as `payload`.
    let object: ArraySlice<UInt8>
    /// The object that fields are taken from; nil if the notification is no object.
    private let fields: JSON?

    package init(_ bytes: [UInt8]) {
        let value: JSON?
        do { value = try JSON(parsing: bytes) } catch { value = nil }
        fields = value.flatMap { $0.kind == .object ? $0 : nil }
        object =
            fields?.bytes
            ?? JSONWriter.object { object in
                if let value {
                    object.writeMember("payload", json: value.bytes)
                } else {
                    object.writeMember("payload", String(decoding: bytes, as: UTF8.self))
                }
            }[...]
    }

    /// The template with the fields' values filled in.
    func text(of template: TextTemplate) throws(UndeliverableNotification) -> String {
        var text = ""
        for piece in template.pieces {
            switch piece {
            case .text(let plain): text += plain
            case .variable(let path): text += try value(at: path)
            }
        }
        return text
    }

    private func value(at path: String) throws(UndeliverableNotification) -> String {
        var value = fields
        for name in path.split(separator: ".") { value = value?[String(name)] }
        switch value?.kind {
        case .string: return value?.string ?? ""
        case .number, .bool: return value?.description ?? ""
        case .object, .array, .null, nil: throw .field(path)
        }
    }
}

/// The reason why a notification becomes no broadcast. Names only parts of the configuration, nothing of the payload.
package enum UndeliverableNotification: Error, Equatable {
    /// The payload has no text, number or boolean there.
    case field(String)
    /// The name is not valid for a channel.
    case topic
    /// The event is empty, or reserved for the hub.
    case event

    /// The reason as it continues the log line after the channel's name.
    package var reason: String {
        switch self {
        case .field(let path): "their payload has no text, number or boolean at {\(path)}"
        case .topic: "the topic that they name is empty, or has a NUL in it"
        case .event: "the event that they name is empty, or one that only the hub sends"
        }
    }
}
