/// The location of a Redis or Valkey server and the credentials for it, as an operator writes them in one URL.
///
/// `redis://[user[:password]@]host[:port][/db]`, `rediss://…` for TLS, `unix:///path`, and `redis+sentinel://host[:port],…/NAME`
/// (`rediss+sentinel://` for TLS) for a primary that Sentinel names. The query holds everything else: `user`, `password` and `db`;
/// `ca_file` and `verify=off` with TLS; `sentinel_user` and `sentinel_password`. Printing an address never shows a password.
package struct RedisAddress: Sendable, Equatable, CustomStringConvertible {
    /// A TCP host and port. The host is a name or an IP address, without brackets.
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

    /// The credentials presented to the server. Without a user, the server's `default` user applies.
    package struct Credentials: Sendable, Equatable {
        package var user: String?
        package var password: String?

        package init(user: String? = nil, password: String? = nil) {
            self.user = user
            self.password = password
        }
    }

    /// How to verify the server's certificate.
    package struct Encryption: Sendable, Equatable {
        /// A PEM file of trusted authorities; nil for the machine's own.
        package var authorities: String?
        /// False accepts any certificate, and so any server.
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

    /// For logs and pages: without passwords and file names.
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

/// An address that cannot be understood. The sentence says what to write, and never shows a password.
package struct RedisAddressError: Error, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
