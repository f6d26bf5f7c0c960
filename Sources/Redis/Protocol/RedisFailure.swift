/// Why a connection with Redis ended, or was not made: a kind to decide by and a sentence for the log.
package struct RedisFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// Nobody listens there, or the host has no such name or route.
        case refused
        /// There was no answer in time while connecting.
        case unanswered
        /// The other side ended the connection, or the network did.
        case cut
        /// The other side says nothing any more, although it was asked.
        case silent
        /// The other side does not speak Redis' protocol.
        case protocolError
        /// The certificate, or the encryption, is not what was asked for.
        case certificate
        /// The user or the password is wrong, or one is needed.
        case password
        /// The user may not do what is needed.
        case rights
        /// It reads its data after a start.
        case loading
        /// It is a replica, or lost its primary.
        case readOnly
        /// It has too few replicas to take writes (`min-replicas-to-write`).
        case replicas
        /// Its memory is full (`maxmemory`).
        case memory
        /// It cannot write to its disk.
        case disk
        /// A script of somebody's keeps it busy.
        case busy
        /// It is a part of a Redis Cluster, and not the one for these keys.
        case elsewhere
        /// It has too many clients, or was told to refuse what is needed.
        case refusal
        /// Sentinel does not know, or names a server that is no primary.
        case sentinel
    }

    package let kind: Kind
    /// A sentence without a full stop, that says what to do where somebody can.
    package let description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    static func protocolError(_ what: String) -> RedisFailure {
        RedisFailure(.protocolError, "what answers does not speak Redis' protocol: \(excerpt(what))")
    }

    /// What an error of the server means for the connection; nil where the connection is as good as before, and the error is about the
    /// command alone.
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

    /// What an error of the server means while the connection is made: whatever it is, it is not made.
    static func ofSetUp(_ error: String) -> RedisFailure {
        if let known = ofConnection(error) { return known }
        // Of servers that have a password without users.
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

    /// What a server wrote, for a line of the log: short, and nothing but what Redis' own errors consist of.
    private static func excerpt(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(200).filter { (0x20..<0x7F).contains($0.value) }))
    }
}

/// What the user of the hubs may do in Redis, as `ACL SETUSER` takes it.
package enum RedisRights {
    package static let acl =
        "resetkeys resetchannels ~{roost:*}:* &{roost:*}:* -@all +eval +evalsha +script|load +xadd +xrange +xrevrange "
        + "+publish +subscribe +ping +get +set +del +mget +hget +hset +hdel +hgetall +append +getrange +info +role +time "
        + "+pubsub|numsub +client|setname"
}
