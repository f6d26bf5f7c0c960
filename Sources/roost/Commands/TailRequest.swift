/// What `roost tail` was asked for.
struct TailRequest: Sendable {
    /// With or without `realtime:` before it.
    let topic: String
    /// `schema.table` or `table`, or nil for no row changes.
    let table: String?
    let filter: String?
    let isPrivate: Bool
    /// The hub's WebSocket URL, or nil for the one that the configuration describes.
    let url: String?
    /// Nil: sign one with the configuration's secret.
    let token: String?
}
