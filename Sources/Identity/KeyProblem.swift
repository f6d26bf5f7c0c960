/// Why keys cannot be used: a sentence for the operator. It never holds a key or a URL, since a URL may hold credentials.
package struct KeyProblem: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
