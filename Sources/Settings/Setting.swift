/// One setting: its key, its kind, its default, and its purpose. The table of all settings is in `Setting+All.swift`;
/// `config/roost.yaml` is the same table for people, and a test compares the two.
package struct Setting: Sendable {
    /// The key in the file, with dots between the levels: `http.port`.
    package let key: String
    /// The kind of value.
    package let kind: Kind
    /// The default; nil if there is none and the setting stays unset.
    package let standard: SettingValue?
    /// The unit of a number, or nil.
    package let unit: String?
    /// A sentence or two; `config/roost.yaml` has the same words.
    package let note: String
    /// True if the value, or a part of it, must not be printed.
    package let isSecret: Bool
    /// Whether a reload (SIGHUP) applies a new value; others need a restart.
    package let isReloaded: Bool
    /// Another product's variable that sets it if ours does not, so that an app's backend and the hub can share one
    /// environment.
    package let alias: String?

    init(
        _ key: String, _ kind: Kind, standard: SettingValue?, unit: String? = nil, isSecret: Bool = false,
        isReloaded: Bool = false, alias: String? = nil, _ note: String
    ) {
        self.key = key
        self.kind = kind
        self.standard = standard
        self.unit = unit
        self.isSecret = isSecret
        self.isReloaded = isReloaded
        self.alias = alias
        self.note = note
    }

    /// The environment variable that sets it: `ROOST_HTTP_PORT`.
    package var environmentName: String {
        Self.environmentPrefix + "_" + key.uppercased().replacing(".", with: "_")
    }

    /// The flag that sets it, for those settings that have one: `--http-port`.
    package var flagName: String {
        "--" + key.replacing(".", with: "-").replacing("_", with: "-")
    }

    /// The prefix of all environment variables of Roost.
    package static let environmentPrefix = "ROOST"

    /// The environment variable that names the file. Not a setting, since a file cannot name itself.
    package static let fileVariable = "ROOST_CONFIG"

    /// The environment variable that names the folder of Postgres' programs (initdb, pg_ctl) for `roost demo` and the
    /// tests. Not a setting, since a hub does not start Postgres.
    package static let postgresProgramsVariable = "ROOST_POSTGRES_BIN"

    /// The environment variable with the token of `roost-load`; a hub ignores it.
    package static let tokenVariable = "ROOST_TOKEN"
}

/// A setting's value, parsed and within its bounds.
package enum SettingValue: Sendable, Equatable, CustomStringConvertible {
    case text(String)
    case integer(Int)
    case toggle(Bool)

    /// The form in the file. Secrets are not masked here (see `EffectiveValue.printed`).
    package var description: String {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .toggle(let isOn): isOn ? "true" : "false"
        }
    }
}
