/// A setting's value, read and within its bounds.
package enum SettingValue: Sendable, Equatable, CustomStringConvertible {
    case text(String)
    case integer(Int)
    case toggle(Bool)

    /// As it would be written in the file; secrets are not masked here (see `EffectiveValue.printed`).
    package var description: String {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .toggle(let isOn): isOn ? "true" : "false"
        }
    }
}
