/// Why a line of `roost push --file` is no notification.
package enum PushLineError: Error, Equatable {
    case notJSON(offset: Int)
    case wrong(_ key: String, _ expected: String)
}

extension PushLineError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notJSON(let offset): "it is no JSON object (byte \(offset) does not fit)"
        case .wrong(let key, let expected): "\"\(key)\" must be \(expected)"
        }
    }
}
