extension Kind {
    /// As `roost config print --json` names it, for programs that make or check configurations.
    package var name: String {
        switch self {
        case .integer: "integer"
        case .toggle: "toggle"
        case .choice: "choice"
        case .host: "host"
        case .name: "name"
        case .connection: "connection"
        case .secret: "secret"
        case .secrets: "secrets"
        case .words(.some): "choices"
        case .words(nil): "words"
        case .path: "path"
        case .mode: "mode"
        case .origins: "origins"
        case .networks: "networks"
        case .webURL: "url"
        case .windows: "windows"
        case .columns: "columns"
        case .statement: "statement"
        case .query: "query"
        case .bundle: "bundle"
        case .code: "code"
        case .pem: "pem"
        case .tables: "tables"
        case .template: "template"
        case .json: "json"
        }
    }
}
