import Foundation
import Settings
import Tail
import Wire

/// `roost tail`.
struct TopicTail {
    private let request: TailRequest
    private let configuration: RoostConfiguration

    init(_ request: TailRequest, _ configuration: RoostConfiguration) {
        self.request = request
        self.configuration = configuration
    }

    func run() throws {
        var target = Tail.Target(
            host: configuration.httpHost, port: configuration.httpPort, isTLS: false, token: try token(),
            topic: request.topic.hasPrefix("realtime:") ? request.topic : "realtime:" + request.topic,
            isPrivate: request.isPrivate, changes: changes)
        if let url = request.url {
            guard let parts = URLComponents(string: url), let host = parts.host, ["ws", "wss"].contains(parts.scheme)
            else {
                throw RunFailure("--url must be ws://HOST:PORT or wss://HOST:PORT, not \(Mask.url(url)).", .usage)
            }
            target.host = host
            target.isTLS = parts.scheme == "wss"
            target.port = parts.port ?? (target.isTLS ? 443 : 80)
        }
        let tail = Tail(
            target: target, onEvent: { StandardOutput.line($0) },
            onTrouble: { StandardError.write("roost tail: \($0)\n") })
        throw RunFailure(tail.run())
    }

    private func token() throws -> String {
        if let token = request.token { return token }
        let secret = try configuration.requireJWTSecret(for: "roost tail without --token")
        return try DevelopmentToken(role: "service_role", lifetime: 86_400).signed(with: secret)
    }

    private var changes: [String] {
        guard let name = request.table else { return [] }
        let parts = name.split(separator: ".", maxSplits: 1)
        let (schema, table) = parts.count == 2 ? (String(parts[0]), String(parts[1])) : ("public", name)
        func json(_ text: String) -> String { String(decoding: JSONString.encode(text), as: UTF8.self) }
        let filter = request.filter.map { ",\"filter\":\(json($0))" } ?? ""
        return ["{\"event\":\"*\",\"schema\":\(json(schema)),\"table\":\(json(table))\(filter)}"]
    }
}
