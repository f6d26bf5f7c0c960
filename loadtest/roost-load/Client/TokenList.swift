import FoundationEssentials

/// A token for each subscriber, which its joins bring along: the policies see so many users.
struct TokenList {
    let tokens: [String]

    init(path: String, subscribers: Int) throws {
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw LoadFailure("The file of tokens \(path) cannot be read.")
        }
        tokens = text.split(separator: "\n").prefix(subscribers).map(String.init)
        guard tokens.count == subscribers else {
            throw LoadFailure("\(path) has \(tokens.count) tokens for \(subscribers) subscribers: one a line, please.")
        }
    }
}
