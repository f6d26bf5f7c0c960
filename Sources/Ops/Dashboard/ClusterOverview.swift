import Documents

/// The hubs of a cluster, for the operator's page.
package struct ClusterOverview: Sendable {
    package struct Hub: Sendable {
        package var name: String
        /// `there`, `draining`, `left` or `died`.
        package var state: String
        /// Roost's version; nil if the hub has not reported it.
        package var version: String?
        /// Seconds since its start; nil, as below, if the hub has not reported it.
        package var age: Int?
        package var connections: Int?
        /// Members present on it, as far as this hub knows.
        package var members: Int
        /// Messages per second that it sent to the other hubs, and received from them.
        package var said: Int?
        package var heard: Int?
        /// Entries of the log that it has not read yet.
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

    /// The address of Redis, without passwords.
    package var server: String
    /// The reason why this hub works alone; nil while it acts as one with the others.
    package var problem: String?
    package var gaps: UInt64
    package var disconnects: UInt64
    package var waitingBytes: Int
    package var isCoordinator: Bool
    /// This hub comes first.
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
                        "version": .optional(hub.version), "age": Self.optionalInteger(hub.age),
                        "connections": Self.optionalInteger(hub.connections), "members": .integer(hub.members),
                        "said": Self.optionalInteger(hub.said), "heard": Self.optionalInteger(hub.heard),
                        "behind": Self.optionalInteger(hub.behind), "gaps": Self.optionalInteger(hub.gaps),
                    ]
                }),
        ]
    }

    private static func optionalInteger(_ number: Int?) -> JSONDocument { number.map { .integer($0) } ?? .null }
}
