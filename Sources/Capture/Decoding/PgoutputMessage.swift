package import Wire

/// A message of the logical replication stream by the plugin pgoutput, protocol version 1 (Postgres' documentation,
/// "Logical Replication Message Formats").
///
/// Buffers point into the message that was parsed, and are valid as long as it is.
package enum PgoutputMessage {
    /// - Parameters:
    ///   - commit: the start of the transaction's commit record.
    ///   - time: of the commit, microseconds since 2000-01-01 UTC.
    ///   - xid: the transaction's id without its epoch.
    case begin(commit: LSN, time: Int64, xid: UInt32)
    /// - Parameter end: the end of the commit record. Streaming from there begins with the next transaction.
    case commit(end: LSN)
    /// Precedes the first change of a table, and comes again after the table was altered.
    case relation(RelationDescription)
    case insert(relation: UInt32, new: Tuple)
    /// - Parameter old: the replica identity's values if they changed, or the whole row if the identity is FULL.
    case update(relation: UInt32, old: OldTuple?, new: Tuple)
    case delete(relation: UInt32, old: OldTuple)
    case truncate(relations: [UInt32])
    /// Messages that say nothing about rows: origins, names of types.
    case other

    package struct OldTuple {
        package let tuple: Tuple
        /// True if the tuple has all columns, not only those of the replica identity.
        package let isWhole: Bool
    }

    package enum Value {
        case null
        /// A value that an UPDATE left in the TOAST table, so that Postgres did not read it.
        case unchanged
        /// The output of the type's output function.
        case text(UnsafeRawBufferPointer)
    }

    package typealias Tuple = [Value]

    /// - Throws: `MalformedStream`.
    package init(_ bytes: UnsafeRawBufferPointer) throws(MalformedStream) {
        var reader = StreamReader(bytes)
        switch try reader.readByte() {
        case UInt8(ascii: "B"):
            let (commit, time): (UInt64, Int64) = (try reader.readInteger(), try reader.readInteger())
            self = .begin(commit: LSN(commit), time: time, xid: try reader.readInteger())
        case UInt8(ascii: "C"):
            _ = try reader.readByte()
            _ = try reader.readInteger() as UInt64
            let end: UInt64 = try reader.readInteger()
            _ = try reader.readInteger() as Int64
            self = .commit(end: LSN(end))
        case UInt8(ascii: "R"): self = .relation(try RelationDescription(&reader))
        case UInt8(ascii: "I"):
            let relation: UInt32 = try reader.readInteger()
            guard try reader.readByte() == UInt8(ascii: "N") else { throw MalformedStream() }
            self = .insert(relation: relation, new: try reader.readTuple())
        case UInt8(ascii: "U"):
            let relation: UInt32 = try reader.readInteger()
            var old: OldTuple?
            var kind = try reader.readByte()
            if kind != UInt8(ascii: "N") {
                old = OldTuple(tuple: try reader.readTuple(), isWhole: kind == UInt8(ascii: "O"))
                kind = try reader.readByte()
            }
            guard kind == UInt8(ascii: "N") else { throw MalformedStream() }
            self = .update(relation: relation, old: old, new: try reader.readTuple())
        case UInt8(ascii: "D"):
            let relation: UInt32 = try reader.readInteger()
            let kind = try reader.readByte()
            self = .delete(
                relation: relation, old: OldTuple(tuple: try reader.readTuple(), isWhole: kind == UInt8(ascii: "O")))
        case UInt8(ascii: "T"):
            let count: UInt32 = try reader.readInteger()
            _ = try reader.readByte()
            var relations: [UInt32] = []
            for _ in 0..<count { relations.append(try reader.readInteger()) }
            self = .truncate(relations: relations)
        default: self = .other
        }
    }
}

/// A table as it was at the time of the changes that follow.
package struct RelationDescription: Equatable, Sendable {
    package struct Column: Equatable, Sendable {
        package let name: Name
        /// An oid of pg_type.
        package let type: UInt32
        package let isIdentity: Bool
    }

    /// The table's oid; for a change of a partition that of its root, as the publication has
    /// publish_via_partition_root.
    package let oid: UInt32
    package let columns: [Column]

    package init(oid: UInt32, columns: [Column]) {
        self.oid = oid
        self.columns = columns
    }

    fileprivate init(_ reader: inout StreamReader) throws(MalformedStream) {
        oid = try reader.readInteger()
        _ = try reader.readString()
        _ = try reader.readString()
        _ = try reader.readByte()
        let count: UInt16 = try reader.readInteger()
        var columns: [Column] = []
        for _ in 0..<count {
            let flags = try reader.readByte()
            let name = try reader.readString()
            let type: UInt32 = try reader.readInteger()
            _ = try reader.readInteger() as UInt32
            columns.append(Column(name: Name(name), type: type, isIdentity: flags & 1 == 1))
        }
        self.columns = columns
    }
}

/// The wrapper around the plugin's messages in a walsender's stream (Postgres' documentation, "Streaming Replication
/// Protocol").
package enum StreamMessage {
    /// - Parameter end: the end of the WAL at the time of sending.
    case data(UnsafeRawBufferPointer, end: LSN)
    /// - Parameter wantsReply: true if the walsender will end the session unless it hears from the hub soon.
    case keepalive(end: LSN, wantsReply: Bool)

    /// - Throws: `MalformedStream`.
    package init(_ bytes: UnsafeRawBufferPointer) throws(MalformedStream) {
        var reader = StreamReader(bytes)
        switch try reader.readByte() {
        case UInt8(ascii: "w"):
            _ = try reader.readInteger() as UInt64
            let end = LSN(try reader.readInteger())
            _ = try reader.readInteger() as UInt64
            self = .data(reader.rest, end: end)
        case UInt8(ascii: "k"):
            let end = LSN(try reader.readInteger())
            _ = try reader.readInteger() as UInt64
            self = .keepalive(end: end, wantsReply: try reader.readByte() == 1)
        default: throw MalformedStream()
        }
    }

    /// Builds a standby status update: everything up to `place` is stored.
    ///
    /// - Parameter asks: asks for a reply, which a walsender sends at once.
    package static func acknowledgement(of place: LSN, asks: Bool) -> [UInt8] {
        var message = [UInt8(ascii: "r")]
        // Written, flushed, applied: a logical slot uses the second. The time serves only statistics.
        for value in [place.rawValue, place.rawValue, place.rawValue, 0] {
            withUnsafeBytes(of: value.bigEndian) { message += $0 }
        }
        return message + [asks ? 1 : 0]
    }
}

/// A message that this version of the protocol does not have.
package struct MalformedStream: Error, CustomStringConvertible {
    package var description: String { "Postgres sent a replication message that the hub cannot read" }
}

private struct StreamReader {
    private(set) var rest: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

    mutating func readByte() throws(MalformedStream) -> UInt8 {
        guard let byte = rest.first else { throw MalformedStream() }
        rest = UnsafeRawBufferPointer(rebasing: rest[1...])
        return byte
    }

    mutating func readBytes(_ count: Int) throws(MalformedStream) -> UnsafeRawBufferPointer {
        guard count >= 0, rest.count >= count else { throw MalformedStream() }
        defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
        return UnsafeRawBufferPointer(rebasing: rest[..<count])
    }

    mutating func readInteger<Integer: FixedWidthInteger>() throws(MalformedStream) -> Integer {
        Integer(bigEndian: try readBytes(MemoryLayout<Integer>.size).loadUnaligned(as: Integer.self))
    }

    mutating func readString() throws(MalformedStream) -> String {
        guard let end = rest.firstIndex(of: 0) else { throw MalformedStream() }
        let text = String(decoding: rest[..<end], as: UTF8.self)
        rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
        return text
    }

    mutating func readTuple() throws(MalformedStream) -> PgoutputMessage.Tuple {
        let count: UInt16 = try readInteger()
        var tuple: PgoutputMessage.Tuple = []
        tuple.reserveCapacity(Int(count))
        for _ in 0..<count {
            switch try readByte() {
            case UInt8(ascii: "n"): tuple.append(.null)
            case UInt8(ascii: "u"): tuple.append(.unchanged)
            case UInt8(ascii: "t"): tuple.append(.text(try readBytes(Int(try readInteger() as UInt32))))
            default: throw MalformedStream()
            }
        }
        return tuple
    }
}
