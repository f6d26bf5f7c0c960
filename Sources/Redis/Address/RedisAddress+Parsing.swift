extension RedisAddress {
    private static let form =
        "write redis://[user:password@]host[:port][/db], rediss://… for TLS, unix:///path, "
        + "or redis+sentinel://host:26379,host:26379/NAME"
    private static let port: UInt16 = 6379
    private static let sentinelPort: UInt16 = 26379

    /// - Throws: `RedisAddressError`, a sentence that says what to write.
    package init(_ text: String) throws(RedisAddressError) {
        guard let mark = text.firstRange(of: "://") else {
            throw RedisAddressError("The address of Redis has no scheme: \(Self.form).")
        }
        let scheme = text[..<mark.lowerBound].lowercased()
        var rest = text[mark.upperBound...]
        guard !rest.contains("#") else {
            throw RedisAddressError("The address of Redis has a #, which ends a URL: write %23 in a password.")
        }
        let query = rest.firstIndex(of: "?").map { rest[rest.index(after: $0)...] } ?? ""
        rest = rest.prefix { $0 != "?" }
        switch scheme {
        case "unix":
            guard rest.hasPrefix("/"), rest.count > 1 else {
                throw RedisAddressError("The path of a Unix socket begins with a slash: write unix:///path.")
            }
            self.init(.unix(try Self.percentDecoded(rest, "path")))
        case "redis", "rediss", "redis+sentinel", "rediss+sentinel":
            try self.init(isSentinel: scheme.hasSuffix("sentinel"), authority: rest)
            if scheme.hasPrefix("rediss") { encryption = Encryption() }
        default:
            throw RedisAddressError("The address of Redis has a scheme that Roost does not know: \(Self.form).")
        }
        try applyQuery(query)
    }

    private init(isSentinel: Bool, authority: Substring) throws(RedisAddressError) {
        var rest = authority
        var credentials = Credentials()
        // The last @, so that a password may contain one that is not written as %40.
        if let at = rest.lastIndex(of: "@") {
            credentials = try Self.parseCredentials(rest[..<at])
            rest = rest[rest.index(after: at)...]
        }
        let hosts = rest.prefix { $0 != "/" }
        let path = rest.dropFirst(hosts.count + 1)
        guard !path.contains("/") else {
            throw RedisAddressError("The address of Redis has two slashes after the host: \(Self.form).")
        }
        if isSentinel {
            let name = try Self.percentDecoded(path, "name of the primary")
            guard !name.isEmpty else {
                throw RedisAddressError(
                    "The address of Sentinel has no name of a primary: write redis+sentinel://host:26379/NAME, "
                        + "NAME as in `sentinel monitor`.")
            }
            var endpoints: [Endpoint] = []
            for host in hosts.split(separator: ",", omittingEmptySubsequences: false) {
                endpoints.append(try Self.parseEndpoint(host, port: Self.sentinelPort))
            }
            self.init(.sentinel(endpoints, name: name))
        } else {
            self.init(.tcp(try Self.parseEndpoint(hosts, port: Self.port)))
            if !path.isEmpty { database = try Self.parseDatabase(path) }
        }
        self.credentials = credentials
    }

    private mutating func applyQuery(_ query: Substring) throws(RedisAddressError) {
        for pair in query.split(separator: "&") {
            let name = pair.prefix { $0 != "=" }
            let text = pair.dropFirst(name.count + 1)
            switch name {
            case "user": credentials.user = try Self.percentDecoded(text, "user")
            case "password": credentials.password = try Self.percentDecoded(text, "password")
            case "sentinel_user": sentinelCredentials.user = try Self.percentDecoded(text, "user")
            case "sentinel_password": sentinelCredentials.password = try Self.percentDecoded(text, "password")
            case "db": database = try Self.parseDatabase(text)
            case "ca_file", "verify":
                guard encryption != nil else {
                    throw RedisAddressError("\(name) is about TLS, and the address of Redis has none: write rediss://.")
                }
                if name == "ca_file" {
                    encryption?.authorities = try Self.percentDecoded(text, "ca_file")
                } else if text == "off" || text == "on" {
                    encryption?.verifies = text == "on"
                } else {
                    throw RedisAddressError("verify is on or off: write verify=off to take any certificate.")
                }
            default:
                throw RedisAddressError(
                    "The address of Redis has an option that Roost does not know: it knows user, password, db, ca_file, "
                        + "verify, sentinel_user and sentinel_password.")
            }
        }
        if credentials.user != nil, credentials.password == nil {
            throw RedisAddressError(
                "The address of Redis has a user without a password: write redis://user:password@host.")
        }
    }

    private static func parseCredentials(_ text: Substring) throws(RedisAddressError) -> Credentials {
        let user = text.prefix { $0 != ":" }
        var found = Credentials()
        if !user.isEmpty { found.user = try percentDecoded(user, "user") }
        if user.count < text.count { found.password = try percentDecoded(text.dropFirst(user.count + 1), "password") }
        return found
    }

    private static func parseDatabase(_ text: Substring) throws(RedisAddressError) -> Int {
        guard let number = Int(text), (0...65535).contains(number), !text.hasPrefix("+") else {
            throw RedisAddressError("The database of Redis is a number: write redis://host:6379/0.")
        }
        return number
    }

    private static func parseEndpoint(_ text: Substring, port: UInt16) throws(RedisAddressError) -> Endpoint {
        var host = text
        var rest: Substring = ""
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else {
                throw RedisAddressError("The address of Redis has a bracket without its other: write [::1]:6379.")
            }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
        } else if let colon = text.firstIndex(of: ":") {
            host = text[..<colon]
            rest = text[colon...]
        }
        guard !host.isEmpty else { throw RedisAddressError("The address of Redis has no host: \(form).") }
        guard host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") }) else {
            throw RedisAddressError("The host of Redis has a character that no host's name has: \(form).")
        }
        guard !rest.isEmpty else { return Endpoint(host: String(host), port: port) }
        guard rest.hasPrefix(":"), let number = UInt16(rest.dropFirst()), number > 0 else {
            throw RedisAddressError("The port of Redis is a number from 1 to 65535: write host:\(port).")
        }
        return Endpoint(host: String(host), port: number)
    }

    /// Decodes percent-encoding.
    private static func percentDecoded(_ text: Substring, _ what: String) throws(RedisAddressError) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                throw RedisAddressError("The \(what) in the address of Redis has a % of its own: write %25.")
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard !bytes.contains(0), let decoded = String(validating: bytes, as: UTF8.self) else {
            throw RedisAddressError("The \(what) in the address of Redis is not text: write it in UTF-8.")
        }
        return decoded
    }
}
