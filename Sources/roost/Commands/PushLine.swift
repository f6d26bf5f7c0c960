import Documents
import Glibc
import Hub
import Push
import Wire

/// One notification in the format of `roost push --file`: a JSON object on a line of its own.
///
/// `token` (or `channel`, or a browser's `subscription`) and `payload` are required. `kind` (`apns`, `fcm` or `web`),
/// `environment`, `bundleId`, `type` (`alert`,
/// `background`, `liveactivity`), `id`, `collapseId`, `priority`, `expiration` (seconds since 1970), `lane` and `replaces` are optional.
struct PushLine: Sendable {
    /// The values of members that a line lacks.
    struct Defaults: Sendable {
        var environment: PushEnvironment
        var bundle: String?
        var type: PushType
        var priority: Int?
        /// The time after which a push is not worth sending, in milliseconds since 1970.
        var deadline: Int64

        init(
            environment: PushEnvironment, bundle: String?, type: PushType = .alert, priority: Int? = nil,
            deadline: Int64
        ) {
            self.environment = environment
            self.bundle = bundle
            self.type = type
            self.priority = priority
            self.deadline = deadline
        }
    }

    let push: Push

    /// - Throws: `PushLineError`: a few words about the fault, without the token.
    init(parsing bytes: [UInt8], _ defaults: Defaults) throws(PushLineError) {
        let json: JSON
        do { json = try JSON(parsing: bytes) } catch { throw .notJSON(offset: error.offset) }
        guard json.kind == .object else { throw .notJSON(offset: 0) }
        guard let payload = json["payload"], payload.kind == .object else { throw .wrong("payload", "a JSON object") }
        let type = try json.memberValue("type", "alert, background or liveactivity") {
            $0.string.flatMap(PushType.init)
        }
        let id = try json.memberValue("id", "a UUID") { $0.string.flatMap { PushID($0) } }
        let priority = try json.memberValue("priority", "10, 5 or 1") { $0.int }
        let chosen = type ?? defaults.type
        push = Push(
            id: id ?? PushID(), to: try Self.pushTarget(json, defaults), type: chosen,
            priority: priority ?? defaults.priority ?? (chosen == .alert ? 10 : 5),
            expiration: Int64(try json.memberValue("expiration", "seconds since 1970") { $0.int } ?? 0),
            collapseID: try json.memberValue("collapseId", "text") { $0.string },
            payload: Array(payload.bytes), lane: try json.memberValue("lane", "text") { $0.string.map { Name($0) } },
            replaces: try json.memberValue("replaces", "true or false") { $0.bool } ?? false,
            keys: WebPushKeys(subscription: json["subscription"]?["keys"]), deadline: defaults.deadline)
    }

    private static func pushTarget(_ json: JSON, _ defaults: Defaults) throws(PushLineError) -> Push.Target {
        let kind = try json.memberValue("kind", "apns, fcm or web") { $0.string.flatMap(PushKind.init) } ?? .apns
        if kind == .fcm {
            guard let token = json["token"]?.string.flatMap({ PushToken($0, of: .fcm) }) else {
                throw .wrong("token", "a registration token of Firebase")
            }
            return .device(PushDestination(token: token, bundle: ""))
        }
        if kind == .web {
            guard let endpoint = json["subscription"]?["endpoint"]?.string.flatMap({ PushToken($0, of: .web) }) else {
                throw .wrong("subscription", "a browser's, with an endpoint")
            }
            return .device(PushDestination(token: endpoint, bundle: ""))
        }
        let environment =
            try json.memberValue("environment", "sandbox or production") { $0.string.flatMap(PushEnvironment.init) }
            ?? defaults.environment
        guard let bundle = try json.memberValue("bundleId", "text", { $0.string }) ?? defaults.bundle else {
            throw .wrong("bundleId", "there, where the configuration has no apns.topic")
        }
        if let channel = try json.memberValue("channel", "text", { $0.string }) {
            return .channel(id: Name(channel), environment: environment, bundle: Name(bundle))
        }
        guard let token = json["token"]?.string.flatMap({ PushToken($0) }) else {
            throw .wrong("token", "hexadecimal digits")
        }
        return .device(PushDestination(token: token, environment: environment, bundle: Name(bundle)))
    }
}

extension JSON {
    /// The value of a member; nil if it is missing or null.
    fileprivate func memberValue<Value>(
        _ key: String, _ expected: String, _ read: (JSON) -> Value?
    ) throws(PushLineError) -> Value? {
        guard let member = self[key], !member.isNull else { return nil }
        guard let value = read(member) else { throw .wrong(key, expected) }
        return value
    }
}

/// The fault of a line of `roost push --file`.
enum PushLineError: Error, Equatable {
    case notJSON(offset: Int)
    case wrong(_ key: String, _ expected: String)
}

extension PushLineError: CustomStringConvertible {
    var description: String {
        switch self {
        case .notJSON(let offset): "it is not a JSON object (byte \(offset) does not fit)"
        case .wrong(let key, let expected): "\"\(key)\" must be \(expected)"
        }
    }
}

/// The lines of `roost push --file`, one notification each.
struct PushLines {
    private let defaults: PushLine.Defaults
    private var number = 0

    /// - Parameter path: `-` for standard input.
    init(_ path: String, _ defaults: PushLine.Defaults) throws {
        self.defaults = defaults
        guard path != "-" else { return }
        // readLine() reads only from standard input.
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0, dup2(descriptor, STDIN_FILENO) >= 0 else {
            throw RunFailure("\(path) cannot be read: \(String(cString: strerror(errno))).", .usage)
        }
        close(descriptor)
    }

    /// The next notification; nil at the end. Empty lines are skipped.
    mutating func nextPush() throws -> Push? {
        while let line = readLine() {
            number += 1
            guard line.contains(where: { !$0.isWhitespace }) else { continue }
            do {
                return try PushLine(parsing: Array(line.utf8), defaults).push
            } catch {
                throw RunFailure(
                    "Line \(number) is not a push: \(error). This line and those after it were not sent.", .usage)
            }
        }
        return nil
    }
}

extension PushOutcome {
    /// The line that `roost push` prints.
    ///
    /// - Parameter environment: the environment in which Apple knew the token, if it is not the first one tried.
    func line(for id: PushID, in environment: PushEnvironment? = nil) -> String {
        var members: [(String, JSONDocument)] = [("id", .text(id.text)), ("outcome", .text(name))]
        switch self {
        case .refused(let status, let reason):
            members += [("status", .integer(status)), ("reason", .text(reason))]
        case .badToken(let reason):
            members += [("status", .integer(400)), ("reason", .text(reason))]
        case .unregistered(let since):
            members.append(("status", .integer(410)))
            if let since { members.append(("since", .integer(since))) }
        case .tooLarge(let bytes, let limit):
            members += [("bytes", .integer(bytes)), ("limit", .integer(limit))]
        case .delivered, .superseded, .expired, .overflow, .unanswered, .stopped: break
        }
        if let environment { members.append(("environment", .text(environment.rawValue))) }
        return JSONDocument.object(members).description
    }
}
