package import Wire

/// A client's request that is passed on to the application's backend, and whose answer becomes a generation of a stream.
package struct StreamForward: Sendable {
    package let name: StreamName
    package let generation: StreamID
    /// The backend's.
    package let url: String
    /// Of the client's request: what the backend needs besides the body, such as `content-type: application/json`.
    package let headers: [String]
    package let body: [UInt8]
    /// Whose request it is, and as whom a row of `streams.on_close` is written.
    package let bearer: StreamBearer
    /// Whose share it counts for.
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

/// Passes requests on. From any thread; must not wait.
package protocol StreamForwarder: Sendable {
    /// Makes room for one request. Each that has room is passed on, or gives it back.
    ///
    /// - Returns: false if as many are under way as there may be, of this owner or of all.
    func reserve(for owner: StreamOwner?) -> Bool
    func giveBack(for owner: StreamOwner?)

    /// Passes one on that has room. What it is answered is appended to its stream, which then ends.
    func forward(_ forward: StreamForward)

    /// What a backend may do that brings a ticket; nil for one that this forwarder did not give out.
    func verify(_ ticket: String) -> StreamTicket?
}

/// The right to write one generation of one stream, for the backend that a request was passed on to.
package struct StreamTicket: Sendable, Equatable {
    package let name: StreamName
    package let generation: StreamID
    /// In seconds since 1970.
    package let expiresAt: Int
    /// Whose request it was, and as whom a row of `streams.on_close` is written.
    package let bearer: StreamBearer

    package init(name: StreamName, generation: StreamID, expiresAt: Int, bearer: StreamBearer) {
        self.name = name
        self.generation = generation
        self.expiresAt = expiresAt
        self.bearer = bearer
    }
}
