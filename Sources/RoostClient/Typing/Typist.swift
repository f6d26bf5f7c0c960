public import Foundation

/// Somebody who is typing.
public struct Typist: Sendable, Equatable {
    /// The payload's `user_id`, if it has one.
    public let userID: String?
    /// What the typist's client sent, as the text of a JSON object.
    public let json: Data

    /// What the typist's client sent.
    public func decode<Payload: Decodable>(
        as type: Payload.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Payload {
        try decoder.roostDecode(type, from: json)
    }
}
