import Redis

/// Checks of the rights of the hubs' user.
extension RedisDoctor {
    /// Every command that a hub needs, on an unused key and channel of the cluster, in a form that writes nothing.
    private var tries: [(command: String, [RedisArgument])] {
        let name = RedisArgument.text(keys.nothing)
        return [
            ("eval", ["EVAL", "return 1", 1, name]), ("script|load", ["SCRIPT", "LOAD", "return 1"]),
            // A user who may run it gets the error that there is no such script.
            ("evalsha", ["EVALSHA", .text(String(repeating: "0", count: 40)), 1, name]),
            ("xadd", ["XADD", name, "NOMKSTREAM", "*", "f", ""]), ("xrange", ["XRANGE", name, "-", "+", "COUNT", 1]),
            ("xrevrange", ["XREVRANGE", name, "+", "-", "COUNT", 1]), ("publish", ["PUBLISH", name, ""]),
            ("ping", ["PING"]), ("get", ["GET", name]), ("set", ["SET", name, "", "XX"]), ("del", ["DEL", name]),
            ("mget", ["MGET", name]), ("hget", ["HGET", name, "f"]), ("hgetall", ["HGETALL", name]),
            ("hdel", ["HDEL", name, "f"]), ("getrange", ["GETRANGE", name, 0, 0]), askedCommand("hset", "'f', ''"),
            askedCommand("append", "''"), ("info", ["INFO", "server"]), ("role", ["ROLE"]), ("time", ["TIME"]),
            ("pubsub|numsub", ["PUBSUB", "NUMSUB", name]), ("client|setname", ["CLIENT", "SETNAME", "roost-doctor"]),
            // The last one: a subscribed connection takes no other commands.
            ("subscribe", ["SUBSCRIBE", name]),
        ]
    }

    /// For a command without a form that writes nothing, asks Redis whether the user may run it; versions before 7.0
    /// cannot tell.
    private func askedCommand(_ command: String, _ rest: String) -> (command: String, [RedisArgument]) {
        let script = """
            if redis.acl_check_cmd and not redis.acl_check_cmd('\(command)', KEYS[1], \(rest)) then \
            return redis.error_reply("-NOPERM to run '\(command)'") end
            """
        return (command, ["EVAL", .text(script), 1, .text(keys.nothing)])
    }

    /// Uses a connection of its own, which ends with SUBSCRIBE.
    func checkRights() throws(RedisFailure) -> [Finding] {
        let session = try RedisSession(address, name: "roost-doctor", limit: .seconds(3))
        var (commands, lacksKeys, lacksChannels): ([String], Bool, Bool) = ([], false, false)
        for (command, words) in tries {
            guard case .error(let text) = try session.runCommand(words) else { continue }
            guard text.hasPrefix("NOPERM") else {
                // A server that takes no writes replies so here.
                if text.hasPrefix("NOSCRIPT") { continue }
                return [Finding(.error, Self.subject, "Redis refuses \(command): \(Self.printable(text)).")]
            }
            // For a key or a channel, Redis names the kind, in words that differ between its versions; for a command,
            // it quotes the name.
            switch text {
            case _ where text.contains(" key"): lacksKeys = true
            case _ where text.contains(" channel"): lacksChannels = true
            default: commands.append(command)
            }
        }
        let user = address.credentials.user ?? "default"
        var lacks = commands
        if lacksKeys { lacks.append("keys \(keys.pattern)") }
        if lacksChannels { lacks.append("channels \(keys.pattern)") }
        guard !lacks.isEmpty else {
            return [Finding(.good, "redis rights", "The user \(user) may do what the hubs do.")]
        }
        return [
            Finding(
                .error, "redis rights",
                "The user \(user) lacks \(lacks.joined(separator: ", ")); run ACL SETUSER \(user) \(RedisRights.acl)")
        ]
    }

    func checkEncryption(_: RedisSession, _: RedisInformation) -> [Finding] {
        func finding(_ severity: Finding.Severity, _ sentence: String) -> [Finding] {
            [Finding(severity, "redis encryption", sentence)]
        }
        if case .unix = address.place { return finding(.good, "A Unix socket of this machine, which needs no TLS.") }
        guard let encryption = address.encryption else {
            return finding(
                .good,
                "None: anyone on that network can read and forge what hubs send; if it is not yours alone, write "
                    + "rediss://."
            )
        }
        return encryption.verifies
            ? finding(.good, "TLS, and the server's certificate is verified.")
            : finding(
                .warning,
                "TLS, but any certificate is accepted (verify=off); set cluster.ca_file instead.")
    }

    /// An error of the server as a part of a sentence.
    private static func printable(_ text: String) -> String {
        let plain = text.unicodeScalars.filter { (0x20..<0x7F).contains($0.value) }.prefix(200)
        return String(String.UnicodeScalarView(plain)).trimmingSuffix(".")
    }
}

extension String {
    fileprivate func trimmingSuffix(_ suffix: String) -> String {
        hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
    }
}
