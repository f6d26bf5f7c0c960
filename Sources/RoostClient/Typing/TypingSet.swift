/// Who is typing in a channel now, in the order in which they began.
public struct TypingSet: Sendable, Equatable {
    public let typists: [Typist]

    public init(typists: [Typist] = []) { self.typists = typists }
}
