/// Everything that is measured.
enum Catalogue {
    static var all: [Operation] {
        DecodeOperations.all + EncodeOperations.all + FilterOperations.all + WindowOperations.all
            + PresenceOperations.all + TypingOperations.all + HubOperations.all
    }
}
