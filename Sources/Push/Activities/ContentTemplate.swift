package import Wire

/// Builds the content-state of an activity from the facts of its conversation.
package struct ContentTemplate: Sendable, Equatable {
    /// Lists in a content-state are short, because a push has 4096 bytes; `typing_count` and `online_count` count everyone.
    static let listedTyping = 3
    static let listedOnline = 10
    private static let nameLimit = 50

    /// The names that a content-state may use.
    package static let variables: Set<String> = [
        "activity_id", "conversation_id", "conversation_name", "preview", "sender_id", "sender_name",
        "last_message_at", "unread", "typing", "typing_count", "online", "online_count", "present", "present_count",
        "connected",
        "version", "updated_at", "started_at",
    ]

    private let template: JSONTemplate
    private let preview: Preview

    package init(_ text: String, preview: Preview = Preview()) throws(TemplateError) {
        template = try JSONTemplate(text, known: Self.variables)
        guard template.isObject else {
            throw TemplateError(place: "the whole", problem: "a content-state is a JSON object, such as {\"unread\":…}")
        }
        self.preview = preview
    }

    /// The variables of a content-state other than the facts of the conversation.
    struct Circumstances {
        let activity: Name
        let conversation: Name?
        /// Seconds since 1970.
        let startedAt: Int64
        let isConnected: Bool
    }

    /// The content-state of an activity.
    ///
    /// - Parameter timestamp: seconds since 1970.
    func state(
        _ facts: ConversationFacts, _ circumstances: Circumstances, version: Int, timestamp: Int64
    ) -> JSON {
        template.json(variables(facts, circumstances, version: version, timestamp: timestamp))
    }

    /// The values of all variables.
    ///
    /// - Parameter timestamp: seconds since 1970.
    func variables(
        _ facts: ConversationFacts, _ circumstances: Circumstances, version: Int, timestamp: Int64
    ) -> TemplateVariables {
        let names = Preview(limit: Self.nameLimit)
        // The order in which people come and go is not news.
        let typing = Set(facts.typing).sorted()
        let online = Set(facts.online).sorted()
        var variables = TemplateVariables()
        variables.set("activity_id", circumstances.activity.text)
        variables.set("conversation_id", circumstances.conversation?.text ?? "")
        variables.set("conversation_name", names.of(facts.name))
        if let message = facts.lastMessage {
            variables.set("preview", preview.of(message.text))
            variables.set("sender_id", message.senderID)
            variables.set("sender_name", names.of(message.senderName))
            variables.set("last_message_at", message.at)
        }
        variables.set("unread", max(0, facts.unread))
        variables.set("typing", typing.prefix(Self.listedTyping).map(names.of))
        variables.set("typing_count", typing.count)
        // Two names for one list: a backend's card has "present" as the channel has presence.
        for (list, count) in [("online", "online_count"), ("present", "present_count")] {
            variables.set(list, Array(online.prefix(Self.listedOnline)))
            variables.set(count, online.count)
        }
        variables.set("connected", circumstances.isConnected)
        variables.set("version", version)
        variables.set("updated_at", timestamp)
        variables.set("started_at", circumstances.startedAt)
        return variables
    }
}

/// A conversation as one user may see it.
///
/// The code that fills it leaves the user out of `typing` and `online`.
package struct ConversationFacts: Sendable, Equatable {
    package struct Message: Sendable, Equatable {
        package var text: String
        package var senderID: String
        package var senderName: String
        /// Seconds since 1970.
        package var at: Int64

        package init(text: String, senderID: String, senderName: String, at: Int64) {
            self.text = text
            self.senderID = senderID
            self.senderName = senderName
            self.at = at
        }
    }

    package var name: String
    package var lastMessage: Message?
    package var unread: Int
    /// The names of the users typing.
    package var typing: [String]
    /// The ids of the users online.
    package var online: [String]

    package init(
        name: String = "", lastMessage: Message? = nil, unread: Int = 0, typing: [String] = [], online: [String] = []
    ) {
        self.name = name
        self.lastMessage = lastMessage
        self.unread = unread
        self.typing = typing
        self.online = online
    }
}
