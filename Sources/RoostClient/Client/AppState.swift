/// What the app is doing. The hub keeps a client that it lost for as long as the state allows (`GraceWindows`).
public enum AppState: String, Sendable, Codable, CaseIterable {
    case active, inactive, background
}
