/// A request on its way.
struct Flight {
    let connection: PushTransport.Connection
    let server: ServerName
    /// Monotonic milliseconds.
    let sent: Int64
    /// Of the provider token it went with.
    let generation: Int
}
