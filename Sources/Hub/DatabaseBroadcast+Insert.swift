import Wire

extension DatabaseBroadcast {
    /// The change that the message is about, where it is an insert sent by `realtime.broadcast_changes`.
    var insert: JSON? {
        guard case .user(let user) = broadcast, user.encoding == .json else { return nil }
        let payload: JSON
        do { payload = try JSON(parsing: user.payload) } catch { return nil }
        return payload["operation"]?.string == "INSERT" ? payload : nil
    }
}
