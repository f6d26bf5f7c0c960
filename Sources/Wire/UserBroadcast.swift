/// What one client says to the others of its channel by a binary frame (kind 3 in, kind 4 out).
package struct UserBroadcast: Sendable {
    package let event: String
    package let encoding: Encoding
    /// As sent; under `.json` it has not been looked at.
    package let payload: ArraySlice<UInt8>
    /// A JSON object that goes with it (`{"id":…}` for messages from the database), or none.
    package let metadata: [UInt8]?

    package enum Encoding: UInt8, Sendable {
        case raw = 0
        case json = 1
    }

    package init(event: String, encoding: Encoding, payload: ArraySlice<UInt8>, metadata: [UInt8]?) {
        self.event = event
        self.encoding = encoding
        self.payload = payload
        self.metadata = metadata
    }

    /// The payload of the text frame that stands for this message where a client cannot take a binary one:
    /// `{"event":…,"payload":…,"type":"broadcast"[,"meta":…]}`. Nil where text cannot carry it: raw bytes, or a payload
    /// whose sender called it JSON and it is not.
    package func textPayload() -> [UInt8]? {
        guard encoding == .json else { return nil }
        let value: JSON
        do { value = try JSON(parsing: payload) } catch { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(event.utf8.count + value.bytes.count + (metadata?.count ?? 0) + 64)
        out += "{\"event\":".utf8
        JSONString.encode(event, into: &out)
        out += ",\"payload\":".utf8
        out += value.bytes
        out += ",\"type\":\"broadcast\"".utf8
        if let metadata {
            out += ",\"meta\":".utf8
            out += metadata
        }
        out += "}".utf8
        return out
    }
}
