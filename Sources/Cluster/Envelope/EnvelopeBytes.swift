/// Encodes the numbers and texts of an envelope: integers as LEB128 or as eight big-endian bytes.
struct EnvelopeWriter {
    var bytes: [UInt8] = []

    mutating func appendByte(_ value: UInt8) { bytes.append(value) }

    mutating func appendFixed(_ value: UInt64) {
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
        }
    }

    mutating func appendVarint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func appendIdentity(_ hub: HubIdentity) {
        appendByte(UInt8(hub.name.utf8.count))
        bytes.append(contentsOf: hub.name.utf8)
        appendFixed(hub.boot)
    }

    mutating func appendPlace(_ place: LogPlace) {
        appendVarint(place.epoch)
        appendVarint(UInt64(place.offset + 1))
    }

    mutating func appendBlob(_ blob: some Collection<UInt8>) {
        appendVarint(UInt64(blob.count))
        bytes.append(contentsOf: blob)
    }
}

/// Decodes an envelope from untrusted bytes: each read returns nil if the bytes end too early or are invalid.
struct EnvelopeReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func readByte() -> UInt8? { rest.popFirst() }

    mutating func readFixed() -> UInt64? {
        guard rest.count >= 8 else { return nil }
        let value = rest.prefix(8).reduce(into: UInt64(0)) { $0 = $0 << 8 | UInt64($1) }
        rest.removeFirst(8)
        return value
    }

    /// LEB128 of at most ten bytes; only the shortest form is accepted, so that each value has one encoding.
    mutating func readVarint() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            guard let next = readByte() else { return nil }
            let part = UInt64(next & 0x7f)
            if shift == 63, part > 1 { return nil }
            value |= part << shift
            if next & 0x80 == 0 { return shift > 0 && part == 0 ? nil : value }
        }
        return nil
    }

    mutating func readIdentity() -> HubIdentity? {
        guard let count = readByte(), rest.count >= Int(count), HubIdentity.isValidName(rest.prefix(Int(count))) else {
            return nil
        }
        let name = String(decoding: rest.prefix(Int(count)), as: UTF8.self)
        rest.removeFirst(Int(count))
        return readFixed().map { HubIdentity(checked: name, boot: $0) }
    }

    mutating func readPlace() -> LogPlace? {
        guard let epoch = readVarint(), epoch <= LogPlace.mostEpoch, let next = readVarint(),
            next <= UInt64(LogPlace.mostOffset) + 1
        else { return nil }
        return LogPlace(epoch: epoch, offset: Int64(next) - 1)
    }

    /// A sequence number, bounded so that arithmetic on it cannot overflow: reaching the bound takes nine years at a
    /// million messages a second.
    mutating func readSequence() -> UInt64? {
        readVarint().flatMap { $0 <= 1 << 48 ? $0 : nil }
    }

    mutating func readBlob() -> ArraySlice<UInt8>? {
        guard let count = readVarint(), count <= UInt64(rest.count) else { return nil }
        let blob = rest.prefix(Int(count))
        rest.removeFirst(Int(count))
        return blob
    }
}

/// The result of decoding bytes from another hub.
package enum Decoded<Value> {
    case value(Value)
    /// Sent by a newer hub; skipped and counted. Hubs of two versions run side by side during an upgrade.
    case unknownVersion
    case malformed
}

extension Decoded: Equatable where Value: Equatable {}
extension Decoded: Sendable where Value: Sendable {}
