/// Why a connection with Redis ended, or was not made: a kind for decisions and a sentence for the log.
package struct RedisFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// Nothing listens there, or the host has no such name or route.
        case refused
        /// There was no answer in time while connecting.
        case unanswered
        /// The other side or the network ended the connection.
        case cut
        /// The other side stopped answering.
        case silent
        /// The other side does not speak Redis' protocol.
        case protocolError
        /// The certificate or the encryption is not acceptable.
        case certificate
        /// The user or the password is wrong or missing.
        case password
        /// The user lacks a required permission.
        case rights
        /// The server is loading its data after a start.
        case loading
        /// The server is a replica, or lost its primary.
        case readOnly
        /// The server has too few replicas to accept writes (`min-replicas-to-write`).
        case replicas
        /// The server's memory is full (`maxmemory`).
        case memory
        /// The server cannot write to its disk.
        case disk
        /// The server is busy running a script.
        case busy
        /// The server belongs to a Redis Cluster and does not hold these keys.
        case elsewhere
        /// The server has too many clients, or is configured to refuse what is needed.
        case refusal
        /// Sentinel does not know the primary, or names a server that is not one.
        case sentinel
    }

    package let kind: Kind
    /// A sentence without a full stop; it says what to do if anything can be done.
    package let description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    static func protocolError(_ what: String) -> RedisFailure {
        RedisFailure(.protocolError, "what answers does not speak Redis' protocol: \(excerpt(what))")
    }

    /// The meaning of a server error for the connection; nil if it concerns only the command, and the connection is unharmed.
    static func ofConnection(_ error: String) -> RedisFailure? {
        let code = error.prefix { $0 != " " }
        let text = excerpt(error)
        return switch code {
        case "NOAUTH": RedisFailure(.password, "Redis wants a password: write redis://:password@host")
        case "WRONGPASS": RedisFailure(.password, "Redis refuses the user or the password")
        case "NOPERM": lackOfRights(text)
        case "LOADING": RedisFailure(.loading, "Redis is reading its data after a start")
        case "READONLY", "NOTMASTER":
            RedisFailure(.readOnly, "Redis is a replica and takes no writes: name the primary, or let Sentinel name it")
        case "MASTERDOWN": RedisFailure(.readOnly, "Redis is a replica that lost its primary")
        case "NOREPLICAS":
            RedisFailure(.replicas, "Redis takes no writes, as too few replicas are connected (min-replicas-to-write)")
        case "OOM": RedisFailure(.memory, "Redis is full (maxmemory)")
        case "MISCONF": RedisFailure(.disk, "Redis takes no writes, as it cannot save its data to its disk")
        case "BUSY": RedisFailure(.busy, "Redis is kept busy by a script")
        case "MOVED", "ASK", "CLUSTERDOWN", "CROSSSLOT", "TRYAGAIN":
            RedisFailure(.elsewhere, "Redis is part of a Redis Cluster: give Roost a server of its own (\(text))")
        case "ERR" where error.hasPrefix("ERR The user executing the script"): lackOfRights(text)
        case "ERR" where error.hasPrefix("ERR max number of clients"):
            RedisFailure(.refusal, "Redis has too many clients (maxclients)")
        default: nil
        }
    }

    /// The meaning of a server error during set-up: whatever it is, the connection fails.
    static func ofSetUp(_ error: String) -> RedisFailure {
        if let known = ofConnection(error) { return known }
        // From servers that have a password without users.
        if error.hasPrefix("ERR invalid password") || error.hasPrefix("ERR AUTH")
            || error.hasPrefix("ERR Client sent AUTH")
        {
            return RedisFailure(.password, "Redis refuses the password: \(excerpt(error))")
        }
        return RedisFailure(.refusal, "Redis refuses: \(excerpt(error))")
    }

    private static func lackOfRights(_ text: String) -> RedisFailure {
        RedisFailure(
            .rights,
            "Redis does not allow its user what is needed (\(text)): grant it with ACL SETUSER NAME "
                + RedisRights.acl)
    }

    /// A server's text for one log line: short, and only the characters that Redis' own errors use.
    private static func excerpt(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(200).filter { (0x20..<0x7F).contains($0.value) }))
    }
}

/// The permissions that the hubs' user needs in Redis, as `ACL SETUSER` takes them.
package enum RedisRights {
    package static let acl =
        "resetkeys resetchannels ~{roost:*}:* &{roost:*}:* -@all +eval +evalsha +script|load +xadd +xrange +xrevrange "
        + "+publish +subscribe +ping +get +set +del +mget +hget +hset +hdel +hgetall +append +getrange +info +role +time "
        + "+pubsub|numsub +client|setname"
}
