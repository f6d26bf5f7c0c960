extension Channel {
    /// The changes of a table's rows, each once, those of one row in their order.
    ///
    /// What happens from this call on is kept for the loop that reads it, up to `Configuration.bufferLimit` changes;
    /// the hub sends it once the channel is subscribed. A sequence that is made while the channel is joined may begin
    /// with changes of shortly before. After a loss of the connection the hub brings what was missed; where it cannot,
    /// the sequence says `.reload`.
    ///
    /// Ends when the channel is left. Throws when the hub cannot serve these changes, or ends the channel for good.
    ///
    /// - Parameters:
    ///   - type: what a row is decoded to, by `Configuration.decoder`.
    ///   - table: as Postgres writes it; `*` for all of the schema.
    ///   - schema: as Postgres writes it; `*` for all.
    ///   - filter: which rows; those that do not match are not sent.
    ///   - kind: nil for all three.
    ///   - key: what tells rows apart.
    public func changes<Row: Decodable & Sendable>(
        of type: Row.Type, in table: String, schema: String = "public", where filter: RowFilter? = nil,
        only kind: ChangeKind? = nil, key: RowKey<Row>
    ) -> Changes<Row> {
        let mailbox = Mailbox<ChangeSignal>(limit: core.configuration.bufferLimit, .all)
        let binding = ChangeBinding(schema: schema, table: table, kind: kind, filter: filter?.text)
        let lease = attach(.changes(mailbox), binding)
        let reader = ChangeReader(key, core.configuration)
        return RoostThrowingSequence { () async throws(RoostError) in
            while let delivery = try await mailbox.next() {
                if let change = reader.read(delivery) { return withExtendedLifetime(lease) { change } }
            }
            return nil
        }
    }

    /// As above, for rows that are told apart by their `id`.
    public func changes<Row: Decodable & Identifiable & Sendable>(
        of type: Row.Type, in table: String, schema: String = "public", where filter: RowFilter? = nil,
        only kind: ChangeKind? = nil
    ) -> Changes<Row> where Row.ID: Sendable & Decodable {
        changes(of: type, in: table, schema: schema, where: filter, only: kind, key: .id)
    }
}

/// Ends when the channel is left; throws when it cannot go on.
public typealias Changes<Row: Sendable> = RoostThrowingSequence<Change<Row>>
