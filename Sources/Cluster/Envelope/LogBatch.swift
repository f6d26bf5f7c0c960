/// The content of one log entry: messages of one hub, numbered without gaps from `first`.
///
/// Version 1, in this order: version (1 byte), name (length in 1 byte), boot (8 bytes, most significant first), `since`
/// (epoch, offset + 1), `base`, `skipped`, `first`, the number of messages, then each message's length and bytes. All
/// numbers except the boot are LEB128. Bytes after these fields, which a newer hub may send, are ignored.
package struct LogBatch: Equatable, Sendable {
    package static let version: UInt8 = 1
    /// The limit of an encoded batch, in bytes.
    package static let mostBytes = 4 << 20
    package static let mostMessages = 65_536
    /// The most bytes a batch needs in addition to its messages' lengths and bytes.
    static let mostHeader = 1 + 1 + 64 + 8 + 10 * 6

    package var hub: HubIdentity
    /// The log's head when this hub first opened it: a hub that was reading by then is owed everything this hub sends.
    package var since: LogPlace
    /// Messages up to this sequence are not in this log, because the hub comes from another one: it was split off, or
    /// its log was lost. 0 for a hub that began here.
    package var base: UInt64
    /// The number of sequences directly before `first` that this hub gave up, so that no log has them.
    package var skipped: UInt64
    /// The sequence of the first message; a boot's first is 1.
    package var first: UInt64
    /// Never empty.
    package var messages: [ArraySlice<UInt8>]

    package init(
        hub: HubIdentity, since: LogPlace, base: UInt64 = 0, skipped: UInt64 = 0, first: UInt64,
        messages: [ArraySlice<UInt8>]
    ) {
        self.hub = hub
        self.since = since
        self.base = base
        self.skipped = skipped
        self.first = first
        self.messages = messages
    }

    package var last: UInt64 { first + UInt64(messages.count) - 1 }

    package func encoded() -> [UInt8] {
        var writer = EnvelopeWriter()
        writer.bytes.reserveCapacity(Self.mostHeader + messages.reduce(0) { $0 + $1.count + 4 })
        writer.appendByte(Self.version)
        writer.appendIdentity(hub)
        writer.appendPlace(since)
        writer.appendVarint(base)
        writer.appendVarint(skipped)
        writer.appendVarint(first)
        writer.appendVarint(UInt64(messages.count))
        for message in messages { writer.appendBlob(message) }
        return writer.bytes
    }

    package static func decode(_ bytes: ArraySlice<UInt8>) -> Decoded<LogBatch> {
        var reader = EnvelopeReader(bytes)
        guard let version = reader.readByte() else { return .malformed }
        guard version == Self.version else { return .unknownVersion }
        guard bytes.count <= mostBytes, let hub = reader.readIdentity(), let since = reader.readPlace(),
            let base = reader.readSequence(),
            let skipped = reader.readSequence(), let first = reader.readSequence(), first >= 1, skipped < first,
            base < first,
            let count = reader.readVarint(), (1...UInt64(mostMessages)).contains(count),
            count <= UInt64(reader.rest.count)
        else { return .malformed }
        var messages: [ArraySlice<UInt8>] = []
        messages.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let message = reader.readBlob() else { return .malformed }
            messages.append(message)
        }
        return .value(LogBatch(hub: hub, since: since, base: base, skipped: skipped, first: first, messages: messages))
    }
}
