/// What one entry of the log carries: messages of one hub, numbered without a hole from `first`.
///
/// Version 1, in this order: version (1 byte), name (length in 1 byte), boot (8 bytes, most significant first), `since`
/// (epoch, offset + 1), `base`, `skipped`, `first`, how many messages there are; and of each its length and its bytes. All
/// numbers but the boot are LEB128. What a newer hub says behind that is ignored.
package struct LogBatch: Equatable, Sendable {
    package static let version: UInt8 = 1
    /// Bytes of an encoded batch.
    package static let mostBytes = 4 << 20
    package static let mostMessages = 65_536
    /// Bytes that a batch needs beside its messages' lengths and bytes, at most.
    static let mostHeader = 1 + 1 + 64 + 8 + 10 * 6

    package var hub: HubIdentity
    /// The log's head when this hub came to it: whoever read it then is owed all that the hub sends.
    package var since: LogPlace
    /// The hub's messages up to this sequence are not in this log, because it came from another one: a hub that was split
    /// off, or whose log was lost. 0 for a hub that began here.
    package var base: UInt64
    /// How many sequences directly before `first` this hub gave up, so that no log has them.
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
        writer.byte(Self.version)
        writer.identity(hub)
        writer.place(since)
        writer.varint(base)
        writer.varint(skipped)
        writer.varint(first)
        writer.varint(UInt64(messages.count))
        for message in messages { writer.blob(message) }
        return writer.bytes
    }

    package static func decode(_ bytes: ArraySlice<UInt8>) -> Decoded<LogBatch> {
        var reader = EnvelopeReader(bytes)
        guard let version = reader.byte() else { return .malformed }
        guard version == Self.version else { return .unknownVersion }
        guard bytes.count <= mostBytes, let hub = reader.identity(), let since = reader.place(),
            let base = reader.sequence(),
            let skipped = reader.sequence(), let first = reader.sequence(), first >= 1, skipped < first, base < first,
            let count = reader.varint(), (1...UInt64(mostMessages)).contains(count), count <= UInt64(reader.rest.count)
        else { return .malformed }
        var messages: [ArraySlice<UInt8>] = []
        messages.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let message = reader.blob() else { return .malformed }
            messages.append(message)
        }
        return .value(LogBatch(hub: hub, since: since, base: base, skipped: skipped, first: first, messages: messages))
    }
}
