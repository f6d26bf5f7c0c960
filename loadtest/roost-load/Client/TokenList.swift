import Foundation
import Wire

/// A token for each subscriber, which its join brings along: the policies see so many users.
struct TokenList {
    private let tokens: [String]

    init(path: String, subscribers: Int) throws {
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw LoadFailure("The file of tokens cannot be read: \(error.localizedDescription).")
        }
        tokens = text.split(separator: "\n").map(String.init)
        guard tokens.count >= subscribers else {
            throw LoadFailure("\(path) has \(tokens.count) tokens for \(subscribers) subscribers: one a line, please.")
        }
    }

    /// What follows `config` in the payload of a join.
    func member(ofSlot slot: Int) -> String {
        #","access_token":"# + String(decoding: JSONString.encode(tokens[slot]), as: UTF8.self)
    }
}
