/// A server's identity, as it reports it.
package struct RedisServerIdentity: Sendable, Equatable {
    /// Unique to one run of one process; nil if it was not requested or may not be known.
    package var runID: String?
    /// For example `7.0.15`.
    package var version: String?
}

/// The commands sent first on a new connection, all in one round trip, and the handling of their replies.
struct RedisGreeting {
    /// A command of the greeting, with one reply.
    enum Step {
        case authentication, name, identity, role, database
        /// One of `own`.
        case own
    }

    var credentials = RedisAddress.Credentials()
    var database = 0
    /// The name in `CLIENT LIST`; absent if the user may not set one.
    var name: String
    /// Whether to ask for the identity of the server's process.
    var asksIdentity = true
    /// Whether only a primary is acceptable.
    var wantsPrimary = false
    /// Whether this connection receives messages.
    var subscribes = false
    /// Additional commands with one reply each, none of which may be an error.
    var own: [[RedisArgument]] = []

    /// The replies to `own`.
    private(set) var replies: [RedisValue] = []
    private(set) var identity = RedisServerIdentity()

    init(name: String) { self.name = name }

    var commands: [(Step, [RedisArgument])] {
        var commands: [(Step, [RedisArgument])] = []
        if let password = credentials.password {
            let user = credentials.user.map { [RedisArgument.text($0)] } ?? []
            commands.append((.authentication, ["AUTH"] + user + [.text(password)]))
        }
        commands.append((.name, ["CLIENT", "SETNAME", .text(name)]))
        if asksIdentity { commands.append((.identity, ["INFO", "server"])) }
        if wantsPrimary { commands.append((.role, ["ROLE"])) }
        if database != 0 { commands.append((.database, ["SELECT", .integer(Int64(database))])) }
        return commands + own.map { (.own, $0) }
    }

    mutating func takeReply(_ value: RedisValue, of step: Step) throws(RedisFailure) {
        if case .error(let text) = value {
            let failure = RedisFailure.ofSetUp(text)
            // The name only helps a person who inspects the server.
            if case .name = step, failure.kind != .password, failure.kind != .refusal || text.hasPrefix("ERR unknown") {
                return
            }
            throw failure
        }
        switch step {
        case .own: replies.append(value)
        case .role:
            guard value.elements?.first?.text == "master" else {
                throw RedisFailure(.sentinel, "Sentinel names a server that is no primary")
            }
        case .identity:
            for line in (value.text ?? "").split(whereSeparator: \.isNewline) {
                if line.hasPrefix("run_id:") { identity.runID = String(line.dropFirst("run_id:".count)) }
                if line.hasPrefix("redis_version:") {
                    identity.version = String(line.dropFirst("redis_version:".count))
                }
            }
        case .authentication, .name, .database: break
        }
    }
}
