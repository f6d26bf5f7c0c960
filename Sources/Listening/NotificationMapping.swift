package import Hub
import Wire

/// What becomes of the notifications of one channel of Postgres (NOTIFY): broadcasts to the topic and with the event that
/// their payload names.
package struct NotificationMapping: Sendable, Equatable {
    /// The channel as `pg_notify` takes it: letters are not folded.
    package let channel: String
    /// Without `realtime:`.
    let topic: TextTemplate
    let event: TextTemplate
    /// Members are those whom the policies on `realtime.messages` let in.
    let isPrivate: Bool

    /// The channels that its broadcasts may go to.
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

    /// The broadcast that a notification becomes.
    package func broadcast(of payload: NotificationPayload) throws(UndeliverableNotification)
        -> (ChannelKey, BroadcastMessage)
    {
        let topic = try payload.text(of: topic)
        // No text of Postgres' has a NUL, so policies could not be asked about such a topic.
        guard !topic.isEmpty, !topic.utf8.contains(0) else { throw .topic }
        let event = try payload.text(of: event)
        let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate)
        guard !event.isEmpty, !ActivitySummary.isReserved(event: event, topic: key.topic) else { throw .event }
        let message = JSONWriter.object { message in
            message.member("event", event)
            message.member("payload", json: payload.object)
            message.member("type", "broadcast")
        }
        return (key, .text(message))
    }
}

/// What a notification says, parsed once for all its mappings.
package struct NotificationPayload {
    /// The payload of the broadcast, a JSON object as clients need it: the notification's own, or one with the notification's
    /// JSON value or text as `payload`.
    let object: ArraySlice<UInt8>
    /// The object that fields are taken from; nil where the notification is none.
    private let fields: JSON?

    package init(_ bytes: [UInt8]) {
        let value: JSON?
        do { value = try JSON(parsing: bytes) } catch { value = nil }
        fields = value.flatMap { $0.kind == .object ? $0 : nil }
        object =
            fields?.bytes
            ?? JSONWriter.object { object in
                if let value {
                    object.member("payload", json: value.bytes)
                } else {
                    object.member("payload", String(decoding: bytes, as: UTF8.self))
                }
            }[...]
    }

    /// The template with the fields' values in their places.
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

/// Why a notification becomes no broadcast. What it says of it is the configuration's, and nothing of the payload.
package enum UndeliverableNotification: Error, Equatable {
    /// The payload has no text, number or boolean there.
    case field(String)
    /// No channel can have that name.
    case topic
    /// It is empty, or only the hub sends it.
    case event

    /// What it is, as the log goes on after the channel's name.
    package var reason: String {
        switch self {
        case .field(let path): "their payload has no text, number or boolean at {\(path)}"
        case .topic: "the topic that they name is empty, or has a NUL in it"
        case .event: "the event that they name is empty, or one that only the hub sends"
        }
    }
}
