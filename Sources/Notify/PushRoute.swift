import Gateway

/// The paths of the API of pushes, below `/api` and `/realtime/v1/api`.
enum PushRoute {
    case devices, register, registrations, update, start, broadcast
    /// `/live-activity/registrations/{id}`.
    case registration(String)

    private static let prefixes = ["/realtime/v1/api/", "/api/"]
    private static let registrationPrefix = "live-activity/registrations/"

    /// Nil where the path is not one of ours.
    init?(path: String) {
        guard let prefix = Self.prefixes.first(where: path.hasPrefix) else { return nil }
        let rest = path.dropFirst(prefix.count)
        switch rest {
        case "devices": self = .devices
        case "live-activity/register": self = .register
        case "live-activity/registrations": self = .registrations
        case "live-activity/update": self = .update
        case "live-activity/start": self = .start
        case "live-activity/broadcast": self = .broadcast
        default:
            let id = rest.dropFirst(Self.registrationPrefix.count)
            guard rest.hasPrefix(Self.registrationPrefix), !id.isEmpty else { return nil }
            self = .registration(String(id))
        }
    }

    var methods: [HTTPRequest.Method] {
        switch self {
        case .devices, .register: [.post, .delete]
        case .registrations: [.get]
        case .registration: [.delete]
        case .update, .start, .broadcast: [.post]
        }
    }

    /// Content, and what a user's own token must not do: only backends may.
    var isForBackends: Bool {
        switch self {
        case .update, .start, .broadcast: true
        case .devices, .register, .registrations, .registration: false
        }
    }
}
