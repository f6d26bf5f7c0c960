/// Why a subscription to row changes is refused, in one sentence for the person who wrote it.
package struct SubscriptionError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(_ message: String) {
        self.message = message
    }

    package var description: String { message }

    /// A client's text between quotation marks, shortened so that a message stays readable.
    package static func quote(_ text: String) -> String {
        let limit = 100
        let scalars = text.unicodeScalars
        guard let end = scalars.index(scalars.startIndex, offsetBy: limit, limitedBy: scalars.endIndex),
            end != scalars.endIndex
        else { return "\"\(text)\"" }
        return "\"\(String(scalars[..<end]))…\""
    }
}
