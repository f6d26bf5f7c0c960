public import Foundation

/// One client (a tab, a phone) under a presence key.
public struct PresenceMember: Sendable, Equatable {
    /// The hub's name for this presence; another after each change of its payload.
    public let ref: String
    /// What the client tracks, as the text of a JSON object; with the hub's `phx_ref` in it.
    public let json: Data

    /// What the client tracks.
    public func decode<Payload: Decodable>(
        as type: Payload.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Payload {
        try decoder.roostDecode(type, from: json)
    }
}
