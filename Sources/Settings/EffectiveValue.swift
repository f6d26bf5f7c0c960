/// A setting, the value that won, and who set it.
package struct EffectiveValue: Sendable {
    package let setting: Setting
    /// Nil: nobody set it and it has no default.
    package let value: SettingValue?
    package let origin: Origin

    /// The value as it may be shown to anybody: of a secret, only that it is there.
    package var printed: String {
        guard let value else { return "" }
        guard setting.isSecret else { return value.description }
        return switch setting.kind {
        case .connection: Mask.connection(value.description)
        case .webURL: Mask.url(value.description)
        default: Mask.hidden
        }
    }
}
