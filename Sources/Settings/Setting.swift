/// One thing an operator can set: what it is called, what it may be, what it is when nobody says, and why one would
/// change it. The table of all of them is in `Setting+All.swift`; `config/roost.yaml` is the same table for people, and
/// a test holds the two against each other.
package struct Setting: Sendable {
    /// The key in the file, with dots between the levels: `http.port`.
    package let key: String
    /// What the value must be.
    package let kind: Kind
    /// The value when nobody sets one. Nil: there is none, and the setting stays unset.
    package let standard: SettingValue?
    /// What a number counts, or nil.
    package let unit: String?
    /// A sentence or two; the same words stand in `config/roost.yaml`.
    package let note: String
    /// The value, or a part of it, must not be printed.
    package let isSecret: Bool
    /// A reload (SIGHUP) brings a new value into force; else that takes a restart.
    package let isReloaded: Bool
    /// A variable of another product's that sets it where ours does not, so that an app's backend and the hub can share
    /// one environment.
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

    /// What every environment variable of ours starts with.
    package static let environmentPrefix = "ROOST"

    /// The environment variable that names the file; not a setting, since a file cannot name itself.
    package static let fileVariable = "ROOST_CONFIG"

    /// The environment variable that names the folder of Postgres' own programs (initdb, pg_ctl) for `roost demo` and
    /// the tests; not a setting, since a hub starts no Postgres.
    package static let postgresProgramsVariable = "ROOST_POSTGRES_BIN"

    /// The environment variable from which `roost-load` takes its token; nothing to a hub.
    package static let tokenVariable = "ROOST_TOKEN"
}

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
