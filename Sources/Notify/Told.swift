import Hub
import Push
import Wire

/// What a member of a message's audience is told, in the words of the templates.
struct Told {
    let variables: TemplateVariables
    let sender: String?
    let conversation: String?

    /// - Parameter row: what alerts.audience or live_activity.facts returned, as a JSON object.
    init(_ row: [UInt8], badge: Int? = nil, preview: Preview) {
        var variables = TemplateVariables(JSON(trusted: row[...]))
        sender = variables["sender_id"].map(Self.text)
        conversation = variables["conversation_id"].map(Self.text)
        if variables["preview"] == nil, let body = variables["body"] { variables["preview"] = body }
        variables.cut("preview", to: preview)
        if let badge, variables["unread"] == nil { variables.set("unread", badge) }
        self.variables = variables
    }

    /// - Parameter now: seconds since 1970.
    func note(in facts: inout ConversationFacts, at now: Int64) {
        if let name = variables["conversation_name"].map(Self.text) { facts.name = name }
        if let unread = variables["unread"]?.int { facts.unread = unread }
        guard let text = variables["preview"].map(Self.text) else { return }
        facts.lastMessage = ConversationFacts.Message(
            text: text, senderID: sender ?? "", senderName: variables["sender_name"].map(Self.text) ?? "",
            at: variables["sent_at"]?.int.map { Int64($0) } ?? now)
    }

    private static func text(_ value: JSON) -> String { value.string ?? value.description }
}
