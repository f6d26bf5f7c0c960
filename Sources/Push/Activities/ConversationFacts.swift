/// What the hub knows of a conversation, as one user may see it: the matter of a summary.
///
/// Whoever fills it leaves the user out of `typing` and `online`.
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
    /// The names of those who type.
    package var typing: [String]
    /// The ids of those who are online.
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
