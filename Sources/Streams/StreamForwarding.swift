import Wire

/// A client's request that is passed on to the application's backend, and whose answer becomes a generation of a stream.
package struct StreamForward: Sendable {
    package let name: StreamName
    package let generation: StreamID
    /// The backend's URL.
    package let url: String
    /// Headers of the client's request that the backend needs besides the body, such as `content-type: application/json`.
    package let headers: [String]
    package let body: [UInt8]
    /// The client's rights, with which a row of `streams.on_close` is also written.
    package let bearer: StreamBearer
    /// The owner whose share the stream counts for.
    package let owner: StreamOwner?
    /// The member of a message that names its event.
    package let eventMember: String?

    package init(
        name: StreamName, generation: StreamID, url: String, headers: [String], body: [UInt8], bearer: StreamBearer,
        owner: StreamOwner?, eventMember: String?
    ) {
        self.name = name
        self.generation = generation
        self.url = url
        self.headers = headers
        self.body = body
        self.bearer = bearer
        self.owner = owner
        self.eventMember = eventMember
    }
}

/// Passes requests on. Thread-safe; must not wait.
package protocol StreamForwarder: Sendable {
    /// Reserves room for one request. Each reservation is either used to pass the request on, or given back.
    ///
    /// - Returns: false if as many requests as allowed are under way, for this owner or in total.
    func reserveRoom(for owner: StreamOwner?) -> Bool
    func returnRoom(for owner: StreamOwner?)

    /// Passes on a request that has a reservation. Its answer is appended to its stream, which then ends.
    func forwardRequest(_ forward: StreamForward)

    /// The rights of a backend that presents a ticket; nil for a ticket that this forwarder did not issue.
    func verifyTicket(_ ticket: String) -> StreamTicket?
}

/// The right to write one generation of one stream, for the backend that received the request.
package struct StreamTicket: Sendable, Equatable {
    package let name: StreamName
    package let generation: StreamID
    /// Seconds since 1970.
    package let expiresAt: Int
    /// The rights of the client whose request it was, with which a row of `streams.on_close` is also written.
    package let bearer: StreamBearer

    package init(name: StreamName, generation: StreamID, expiresAt: Int, bearer: StreamBearer) {
        self.name = name
        self.generation = generation
        self.expiresAt = expiresAt
        self.bearer = bearer
    }
}
