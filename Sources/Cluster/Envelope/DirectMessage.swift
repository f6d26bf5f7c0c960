/// A message from one hub to another (a question, an answer, part of a snapshot) that does not go through the log.
///
/// Version 1, in this order: version (1 byte), the sender's name and boot, the receiver's boot (8 bytes),
/// `afterSequence`, and the payload up to the end.
package struct DirectMessage: Equatable, Sendable {
    package static let version: UInt8 = 1
    /// The limit of a payload, in bytes.
    package static let mostBytes = 4 << 20

    package var sender: HubIdentity
    /// The boot it is meant for: a restarted hub ignores answers to its earlier process.
    package var receiver: UInt64
    /// The payload is valid right after this sequence of the sender's log messages; nil if it is valid at any time.
    package var afterSequence: UInt64?
    package var payload: ArraySlice<UInt8>

    package init(sender: HubIdentity, receiver: UInt64, afterSequence: UInt64?, payload: ArraySlice<UInt8>) {
        self.sender = sender
        self.receiver = receiver
        self.afterSequence = afterSequence
        self.payload = payload
    }

    package func encoded() -> [UInt8] {
        var writer = EnvelopeWriter()
        writer.appendByte(Self.version)
        writer.appendIdentity(sender)
        writer.appendFixed(receiver)
        writer.appendVarint(afterSequence.map { $0 + 1 } ?? 0)
        writer.bytes.append(contentsOf: payload)
        return writer.bytes
    }

    package static func decode(_ bytes: ArraySlice<UInt8>) -> Decoded<DirectMessage> {
        var reader = EnvelopeReader(bytes)
        guard let version = reader.readByte() else { return .malformed }
        guard version == Self.version else { return .unknownVersion }
        guard let sender = reader.readIdentity(), let receiver = reader.readFixed(), let stamp = reader.readSequence(),
            reader.rest.count <= mostBytes
        else { return .malformed }
        return .value(
            DirectMessage(
                sender: sender, receiver: receiver, afterSequence: stamp == 0 ? nil : stamp - 1, payload: reader.rest))
    }
}
