extension RoostConfiguration {
    /// A changed setting that takes effect only after a restart.
    package struct Postponed: Sendable {
        package let setting: Setting
        /// The value in effect.
        package let present: EffectiveValue
        /// The configured value.
        package let future: EffectiveValue

        /// "http.port needs a restart: it is 4000 until then, and is to be 4100 (/etc/roost/roost.yaml:12)."
        package var sentence: String {
            guard !setting.isSecret else {
                return
                    "\(setting.key) needs a restart: it was changed (\(future.origin)), and the old one is in force until then."
            }
            return "\(setting.key) needs a restart: it is \(Self.printedValue(present)) until then, and is to be "
                + "\(Self.printedValue(future)) (\(future.origin))."
        }

        private static func printedValue(_ value: EffectiveValue) -> String {
            value.value == nil ? "not set" : Quotation.excerpt(value.printed)
        }
    }

    /// This configuration with the values of `next` that a reload applies.
    ///
    /// - Throws: if the combination is invalid; then nothing of `next` may be applied.
    package func reloaded(as next: RoostConfiguration) throws(ConfigurationError) -> RoostConfiguration {
        let values = zip(self.values, next.values).map { old, new in new.setting.isReloaded ? new : old }
        return try RoostConfiguration(values: EffectiveValues(values), file: next.file, cores: loops)
    }

    /// The changes in `next` that only a restart applies.
    package func postponed(in next: RoostConfiguration) -> [Postponed] {
        zip(values, next.values).compactMap { old, new in
            guard !new.setting.isReloaded, old.value != new.value else { return nil }
            return Postponed(setting: new.setting, present: old, future: new)
        }
    }

    /// The changed keys among those that a reload applies.
    package func changes(in next: RoostConfiguration) -> [String] {
        zip(values, next.values).compactMap { old, new in
            new.setting.isReloaded && old.value != new.value ? new.setting.key : nil
        }
    }

    /// The beginning of an error about the value of `key`: its origin, and the key.
    package func errorSubject(_ key: String) -> String {
        guard let value = values.first(where: { $0.setting.key == key }) else { return key }
        return value.origin.errorSubject(value.setting)
    }
}
