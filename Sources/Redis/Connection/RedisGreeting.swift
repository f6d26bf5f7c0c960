/// What tells a server from others, as it says it of itself.
package struct RedisServerIdentity: Sendable, Equatable {
    /// Of one life of one process; nil where it was not asked for or may not be known.
    package var runID: String?
    /// Such as `7.0.15`.
    package var version: String?
}

/// What one says first on a new connection, all of it in one round trip, and what becomes of the replies.
struct RedisGreeting {
    /// A command of the greeting, with one reply.
    enum Step {
        case authentication, name, identity, role, database
        /// One of `own`.
        case own
    }

    var credentials = RedisAddress.Credentials()
    var database = 0
    /// What `CLIENT LIST` shows. Where the user may not set it, there is none.
    var name: String
    /// Whether to ask which process of a server this is.
    var asksIdentity = true
    /// Whether anything but a primary will do.
    var wantsPrimary = false
    /// Whether messages come on this connection.
    var subscribes = false
    /// Commands with one reply each, none of which may be an error.
    var own: [[RedisArgument]] = []

    /// Replies to `own`.
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

    mutating func take(_ value: RedisValue, of step: Step) throws(RedisFailure) {
        if case .error(let text) = value {
            let failure = RedisFailure.ofSetUp(text)
            // A name is a help for who looks at the server, and no more.
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
