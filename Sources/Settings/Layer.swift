import Configuration

/// One of the places that values come from, and how it is named in errors.
struct Layer {
    let provider: any ConfigProvider
    let origin: @Sendable (Setting) -> Origin
    /// Texts that mean "not set here".
    var blanks: Set<String> = [""]

    /// Nil: this layer does not set it.
    func value(of setting: Setting) throws(ConfigurationError) -> SettingValue? {
        let key = AbsoluteConfigKey(setting.key.split(separator: ".").map(String.init))
        let result: LookupResult
        do {
            result = try provider.value(forKey: key, type: .string)
        } catch {
            // The only values without a text are lists.
            throw wrong(setting, found: "a list")
        }
        guard case .string(let text) = result.value?.content, !blanks.contains(text) else { return nil }
        guard let value = setting.kind.read(text) else { throw wrong(setting, found: shown(text, of: setting)) }
        return value
    }

    private func shown(_ text: String, of setting: Setting) -> String {
        setting.isSecret ? "\(text.utf8.count) bytes of something else" : "'\(Quotation.of(text))'"
    }

    private func wrong(_ setting: Setting, found: String) -> ConfigurationError {
        ConfigurationError(
            message: "\(origin(setting).subject(setting)) is \(found), expected \(setting.kind.expectation).")
    }
}
