extension RoostConfiguration {
    /// A setting that was changed and is not in force until the hub is started again.
    package struct Postponed: Sendable {
        package let setting: Setting
        /// What is in force.
        package let present: EffectiveValue
        /// What the configuration says now.
        package let future: EffectiveValue

        /// "http.port needs a restart: it is 4000 until then, and is to be 4100 (/etc/roost/roost.yaml:12)."
        package var sentence: String {
            guard !setting.isSecret else {
                return
                    "\(setting.key) needs a restart: it was changed (\(future.origin)), and the old one is in force until then."
            }
            return "\(setting.key) needs a restart: it is \(Self.shown(present)) until then, and is to be "
                + "\(Self.shown(future)) (\(future.origin))."
        }

        private static func shown(_ value: EffectiveValue) -> String {
            value.value == nil ? "not set" : Quotation.of(value.printed)
        }
    }

    /// This configuration with the values of `next` that a reload brings into force.
    ///
    /// - Throws: where the two make no sense together; then nothing of `next` is to be taken.
    package func reloaded(as next: RoostConfiguration) throws(ConfigurationError) -> RoostConfiguration {
        let values = zip(self.values, next.values).map { old, new in new.setting.isReloaded ? new : old }
        return try RoostConfiguration(values: EffectiveValues(values), file: next.file, cores: loops)
    }

    /// What `next` has otherwise and only a restart brings into force.
    package func postponed(in next: RoostConfiguration) -> [Postponed] {
        zip(values, next.values).compactMap { old, new in
            guard !new.setting.isReloaded, old.value != new.value else { return nil }
            return Postponed(setting: new.setting, present: old, future: new)
        }
    }

    /// The keys whose values differ, of those that a reload brings into force.
    package func changes(in next: RoostConfiguration) -> [String] {
        zip(values, next.values).compactMap { old, new in
            new.setting.isReloaded && old.value != new.value ? new.setting.key : nil
        }
    }

    /// How an error begins that is about the value of `key`: the place that set it, and the key.
    package func subject(_ key: String) -> String {
        guard let value = values.first(where: { $0.setting.key == key }) else { return key }
        return value.origin.subject(value.setting)
    }
}
