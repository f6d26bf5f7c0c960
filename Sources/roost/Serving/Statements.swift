import ChangeFeed

/// The operator's statements, where the configuration has none: those of the sample chat, or nothing.
struct Statements {
    var users: String?
    var audience: String?
    var facts: String?

    static let ofSampleChat = Statements(
        users: PresenceKeeper.statementOfSampleChat, audience: PushStore.audienceOfSampleChat,
        facts: PushStore.factsOfSampleChat)

    /// In place of `users.statement`: it tells nobody.
    static let nobody = "select from unnest($1::text[], $2::boolean[], $3::timestamptz[]) where false"
}
