/// Where a Redis or Valkey server is and who one is there, as an operator writes it in one URL.
///
/// `redis://[user[:password]@]host[:port][/db]`, `rediss://…` for TLS, `unix:///path`, and
/// `redis+sentinel://host[:port],…/NAME` (`rediss+sentinel://` for TLS) for a primary whom Sentinel names. What the URL has no other
/// place for stands in its query: `user`, `password` and `db`; `ca_file` and `verify=off` with TLS; `sentinel_user` and
/// `sentinel_password`. Printing an address never shows a password.
package struct RedisAddress: Sendable, Equatable, CustomStringConvertible {
    /// A host and a port of TCP. The host is a name or an IP address, without brackets.
    package struct Endpoint: Sendable, Hashable, CustomStringConvertible {
        package var host: String
        package var port: UInt16

        package init(host: String, port: UInt16) {
            self.host = host
            self.port = port
        }

        package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    package enum Place: Sendable, Equatable {
        case tcp(Endpoint)
        /// The path of a Unix domain socket.
        case unix(String)
        /// The Sentinels to ask, in this order, and the name by which they know the primary.
        case sentinel([Endpoint], name: String)
    }

    /// Whom the server is told one is. Without a user it is the server's `default`.
    package struct Credentials: Sendable, Equatable {
        package var user: String?
        package var password: String?

        package init(user: String? = nil, password: String? = nil) {
            self.user = user
            self.password = password
        }
    }

    /// How a server's certificate is judged.
    package struct Encryption: Sendable, Equatable {
        /// A PEM file of the authorities that count; nil for the machine's own.
        package var authorities: String?
        /// False takes any certificate, and so anybody for the server.
        package var verifies = true

        package init(authorities: String? = nil, verifies: Bool = true) {
            self.authorities = authorities
            self.verifies = verifies
        }
    }

    package var place: Place
    package var credentials = Credentials()
    package var sentinelCredentials = Credentials()
    package var database = 0
    /// Nil for a connection without TLS.
    package var encryption: Encryption?

    package init(_ place: Place) { self.place = place }

    /// Without passwords and file names: for the log and for pages.
    package var description: String {
        let user = credentials.user.map { "\($0)@" } ?? ""
        let number = database == 0 ? "" : "/\(database)"
        let scheme = encryption == nil ? "redis" : "rediss"
        return switch place {
        case .tcp(let endpoint): "\(scheme)://\(user)\(endpoint)\(number)"
        case .unix(let path): "unix://\(path)"
        case .sentinel(let endpoints, let name):
            "\(scheme)+sentinel://\(user)\(endpoints.map(\.description).joined(separator: ","))/\(name)"
        }
    }
}

/// An address that was written in a way that cannot be meant. The sentence says what to write, and never shows a password.
package struct RedisAddressError: Error, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
