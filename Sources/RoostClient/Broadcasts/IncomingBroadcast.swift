import Wire

/// A broadcast as it arrived, not decoded yet.
package struct IncomingBroadcast: Sendable {
    package let event: String
    package let payload: ArraySlice<UInt8>
    package let isJSON: Bool
    package let meta: BroadcastMeta?

    /// From a text or binary frame; nil where it is none.
    package init?(_ body: ServerMessage.Body) {
        switch body {
        case .json(let json):
            guard let event = json["event"]?.string else { return nil }
            self.event = event
            payload = json["payload"]?.bytes ?? Array("{}".utf8)[...]
            isJSON = true
            meta = json["meta"].map(BroadcastMeta.init)
        case .broadcast(let broadcast):
            event = broadcast.event
            payload = broadcast.payload
            isJSON = broadcast.encoding == .json
            meta = broadcast.metadata.flatMap { bytes in
                do { return BroadcastMeta(try JSON(parsing: bytes)) } catch { return nil }
            }
        }
    }
}
