import Wire

/// The messages that a join waits for: the reply, and for changes the word that they flow.
enum JoinAnswer {
    /// Whether `message` is one of them; throws when it says no.
    static func isOne(_ message: UnsafeRawBufferPointer, awaitsSubscription: Bool) throws -> Bool {
        let parts: [JSON]
        do { parts = try JSON(parsing: Array(message)).elements } catch {
            throw LoadFailure("The hub sent something that is not JSON while joining.")
        }
        guard parts.count == 5 else { return false }
        let payload = parts[4]
        switch parts[3].string {
        case "phx_reply":
            if payload["status"]?.string == "ok" { return true }
            throw LoadFailure("The hub refused a join: \(payload["response"]?.description ?? "without a reason")")
        case "system" where awaitsSubscription && payload["extension"]?.string == "postgres_changes":
            if payload["status"]?.string == "ok" { return true }
            throw LoadFailure("The hub does not follow the table: \(payload["message"]?.string ?? "no reason given")")
        case "phx_close", "phx_error":
            throw LoadFailure("The hub ended a channel while it was joined.")
        default:
            return false
        }
    }
}
