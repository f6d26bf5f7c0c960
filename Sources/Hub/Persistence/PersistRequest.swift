package import Wire

/// A request to store a broadcast as a row of `realtime.messages`: `persist` in the metadata of a binary frame, in a
/// private channel (supabase/realtime PR 2022, and its broadcast handler of 2.174 for `ttl`; supabase-js PR 2690).
package struct PersistRequest: Sendable, Equatable {
    /// Seconds after which the row is deleted; nil for the usual retention.
    package let ttl: Int?

    /// Three days, the retention of the original's table.
    package static let longestTTL = 259_200

    package init(ttl: Int? = nil) { self.ttl = ttl }

    /// Returns nil if the metadata ask for nothing.
    ///
    /// - Parameter wish: the value of `persist`: `true`, or an object with at most a `ttl`, as a number or in digits.
    package init?(_ wish: JSON?) throws(Refusal) {
        guard let wish, !wish.isNull, wish.bool != false else { return nil }
        guard wish.bool == true || wish.kind == .object else { throw .persistTTLInvalid }
        guard let ttl = wish["ttl"], !ttl.isNull else {
            self.init()
            return
        }
        guard let seconds = ttl.int ?? ttl.string.flatMap({ Int($0) }), (1...Self.longestTTL).contains(seconds) else {
            throw .persistTTLInvalid
        }
        self.init(ttl: seconds)
    }
}

/// A broadcast to be stored as a row of `realtime.messages`.
package struct PersistedMessage: Sendable {
    /// Without its prefix.
    package let topic: String
    package let event: String
    package let body: ReplayedMessage.Body
    package let ttl: Int?
    /// The sender, by the claim `sub`; the number of waiting messages is limited per user.
    package let user: Name?

    /// Nil if the table cannot store the payload: it claims to be JSON but is not.
    package init?(_ user: UserBroadcast, in key: ChannelKey, _ request: PersistRequest, by subject: Name?) {
        switch user.encoding {
        case .raw: body = .binary(Array(user.payload))
        case .json:
            do { body = .json(Array(try JSON(parsing: user.payload).bytes)) } catch { return nil }
        }
        topic = String(key.name)
        event = user.event
        ttl = request.ttl
        self.user = subject
    }

    package var bytes: Int {
        let payload =
            switch body {
            case .json(let bytes), .binary(let bytes): bytes.count
            }
        return payload + topic.utf8.count + event.utf8.count
    }
}

/// Stores broadcasts in `realtime.messages`, as the loops see it.
package protocol MessageStore: Sendable {
    /// Answers once, from any thread and possibly before returning. Called on a loop's thread, so it must not block.
    ///
    /// - Parameter answer: receives the row's ID once it is committed; nil if the row may not exist.
    func storeMessage(_ message: PersistedMessage, answer: @escaping @Sendable (_ id: String?) -> Void)
}

/// Acknowledgements that wait until the acknowledged message is committed.
package struct Persistence {
    /// By a number that is never reused.
    private var waiting: [Int: (membership: Membership, ref: JSON)] = [:]

    package init() {}

    package var waitingCount: Int { waiting.count }

    /// - Parameter ref: nil if no answer is expected.
    mutating func storeMessage(
        _ message: PersistedMessage, ref: JSON?, of membership: Membership, _ hub: inout HubContext
    ) {
        guard let ref else { return hub.actions.append(.store(nil, message)) }
        let id = hub.nextSerial()
        waiting[id] = (membership, JSON(trusted: Array(ref.bytes)[...]))
        hub.actions.append(.store(id, message))
    }

    /// Handles the store's answer. The message was delivered in any case, so as in the original it is acknowledged
    /// either way; the ID says that there is a row.
    mutating func receiveAnswer(_ id: Int, _ row: String?, _ hub: inout HubContext) {
        guard let (membership, ref) = waiting.removeValue(forKey: id), !membership.join.hasEnded else { return }
        let response = JSONWriter.object { if let row { $0.writeMember("id", row) } }
        hub.reply(to: ref, of: membership, ok: true, response: response)
    }
}
