import Documents

/// The hubs that act as one, for the operator's page.
package struct ClusterOverview: Sendable {
    package struct Hub: Sendable {
        package var name: String
        /// `there`, `draining`, `left` or `died`.
        package var state: String
        /// Of Roost; nil where it has not said so.
        package var version: String?
        /// Seconds since it began; nil, as below, where it has not said so.
        package var age: Int?
        package var connections: Int?
        /// Who is present on it, as far as is known here.
        package var members: Int
        /// Messages a second that it told the others, and that came from them.
        package var said: Int?
        package var heard: Int?
        /// Entries of the log that it had not read yet.
        package var behind: Int?
        /// Times that its clients were told that messages are missing.
        package var gaps: Int?

        package init(
            name: String, state: String, version: String?, age: Int?, connections: Int?, members: Int, said: Int?,
            heard: Int?,
            behind: Int?, gaps: Int?
        ) {
            self.name = name
            self.state = state
            self.version = version
            self.age = age
            self.connections = connections
            self.members = members
            self.said = said
            self.heard = heard
            self.behind = behind
            self.gaps = gaps
        }
    }

    /// Where Redis is, without passwords.
    package var server: String
    /// Why this hub goes on alone; nil while it acts as one with the others.
    package var problem: String?
    package var gaps: UInt64
    package var disconnects: UInt64
    package var waitingBytes: Int
    package var isCoordinator: Bool
    /// This hub first.
    package var hubs: [Hub]

    package init(
        server: String, problem: String?, gaps: UInt64, disconnects: UInt64, waitingBytes: Int, isCoordinator: Bool,
        hubs: [Hub]
    ) {
        self.server = server
        self.problem = problem
        self.gaps = gaps
        self.disconnects = disconnects
        self.waitingBytes = waitingBytes
        self.isCoordinator = isCoordinator
        self.hubs = hubs
    }

    var json: JSONDocument {
        [
            "server": .text(server), "problem": .optional(problem), "gaps": .integer(Int(clamping: gaps)),
            "disconnects": .integer(Int(clamping: disconnects)), "waiting": .integer(waitingBytes),
            "coordinator": .bool(isCoordinator),
            "hubs": .array(
                hubs.map { hub in
                    [
                        "name": .text(hub.name), "state": .text(hub.state),
                        "version": .optional(hub.version), "age": Self.number(hub.age),
                        "connections": Self.number(hub.connections), "members": .integer(hub.members),
                        "said": Self.number(hub.said), "heard": Self.number(hub.heard),
                        "behind": Self.number(hub.behind), "gaps": Self.number(hub.gaps),
                    ]
                }),
        ]
    }

    private static func number(_ number: Int?) -> JSONDocument { number.map { .integer($0) } ?? .null }
}
