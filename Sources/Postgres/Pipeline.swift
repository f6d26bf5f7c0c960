import CPostgres
import Glibc

/// A one-dimensional array parameter in Postgres' binary form (array_recv and array_send in its source,
/// utils/adt/arrayfuncs.c): built element by element, and emptied for reuse.
///
/// Confined to the thread that uses it. Its memory does not move while a call is sent.
package final class BinaryArray {
    /// Oid of the array type in pg_type.
    package let type: UInt32
    private let elementType: UInt32
    package private(set) var count = 0
    private var hasNulls = false
    private var memory: UnsafeMutableRawBufferPointer
    private var used = headerSize

    /// Dimension count, null flag, element type, then the length and lower bound of the one dimension.
    private static let headerSize = 20

    /// - Parameters:
    ///   - type: oid of an array type in pg_type.
    ///   - elementType: oid of its element type.
    package init(type: UInt32, of elementType: UInt32) {
        self.type = type
        self.elementType = elementType
        memory = .allocate(byteCount: 256, alignment: 8)
    }

    deinit { memory.deallocate() }

    /// Approximate size in memory.
    package var byteCount: Int { used }

    package func append(_ element: UnsafeRawBufferPointer) {
        appendLength(UInt32(element.count))
        reserveBytes(element.count)
        UnsafeMutableRawBufferPointer(rebasing: memory[used...]).copyMemory(from: element)
        used += element.count
        count += 1
    }

    package func append<Integer: FixedWidthInteger>(_ element: Integer) {
        withUnsafeBytes(of: element.bigEndian) { append($0) }
    }

    package func appendNull() {
        appendLength(UInt32.max)
        hasNulls = true
        count += 1
    }

    /// Keeps the memory for the next elements, unless it is more than a batch usually takes.
    package func removeAll() {
        (count, hasNulls, used) = (0, false, Self.headerSize)
        guard memory.count > 1_048_576 else { return }
        memory.deallocate()
        memory = .allocate(byteCount: 256, alignment: 8)
    }

    /// Copies the elements at these indices to a new array.
    package func copyElements(_ places: Range<Int>) -> BinaryArray {
        let part = BinaryArray(type: type, of: elementType)
        visitElements { place, element in
            guard places.contains(place) else { return }
            if let element { part.append(element) } else { part.appendNull() }
        }
        return part
    }

    /// The text of an element whose type has a binary form equal to its text; nil for null.
    package func text(at wanted: Int) -> String? {
        var text: String?
        visitElements { place, element in
            if place == wanted { text = element.map { String(decoding: $0, as: UTF8.self) } }
        }
        return text
    }

    private func visitElements(_ body: (_ place: Int, _ element: UnsafeRawBufferPointer?) -> Void) {
        var at = Self.headerSize
        for place in 0..<count {
            let length = UInt32(bigEndian: memory.loadUnaligned(fromByteOffset: at, as: UInt32.self))
            at += 4
            guard length != UInt32.max else {
                body(place, nil)
                continue
            }
            body(place, UnsafeRawBufferPointer(rebasing: memory[at..<(at + Int(length))]))
            at += Int(length)
        }
    }

    private func appendLength(_ value: UInt32) {
        reserveBytes(4)
        withUnsafeBytes(of: value.bigEndian) {
            UnsafeMutableRawBufferPointer(rebasing: memory[used...]).copyMemory(from: $0)
        }
        used += 4
    }

    private func reserveBytes(_ more: Int) {
        guard used + more > memory.count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(memory.count * 2, used + more), alignment: 8)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<used]))
        memory.deallocate()
        memory = larger
    }

    /// The finished binary form; valid until the array changes.
    fileprivate var bytes: UnsafeRawBufferPointer {
        let header: [UInt32] = count == 0 ? [0, 0, elementType] : [1, hasNulls ? 1 : 0, elementType, UInt32(count), 1]
        for (place, value) in header.enumerated() {
            memory.storeBytes(of: value.bigEndian, toByteOffset: place * 4, as: UInt32.self)
        }
        return UnsafeRawBufferPointer(rebasing: memory[..<(count == 0 ? 12 : used)])
    }
}

/// A prepared statement and the parameters to call it with.
package struct PreparedCall {
    package enum Parameter {
        case text(String?)
        case array(BinaryArray)
    }

    package let name: String
    package let parameters: [Parameter]

    package init(_ name: String, _ parameters: [Parameter]) {
        self.name = name
        self.parameters = parameters
    }
}

extension PostgresConnection {
    /// Prepares a statement under a name local to this session.
    ///
    /// - Parameter types: oids of the parameters in pg_type; 0 leaves a type to the statement.
    package func prepareStatement(
        _ name: String, _ sql: String, types: [UInt32] = [], within limit: Duration = .seconds(10)
    )
        throws
    {
        try demandUsable()
        guard PQsendPrepare(raw, name, sql, Int32(types.count), types) == 1 else { throw markBroken() }
        var failure: PostgresError?
        while let result = try nextResult(until: .now + limit) { failure = failure ?? result.error }
        if let failure { throw recordError(failure) }
    }

    /// Runs prepared statements as one transaction in one round trip (libpq's documentation, "Pipeline Mode"): all of them
    /// or none. Discards their rows.
    ///
    /// - Throws: the first `PostgresError`. The transaction was rolled back, unless the error is of kind `connection` or
    ///   `timeout`: then its outcome is unknown.
    package func runTogether(_ calls: [PreparedCall], within limit: Duration) throws {
        try demandUsable()
        guard PQenterPipelineMode(raw) == 1 else { throw markBroken() }
        for call in calls { try sendCall(call) }
        guard PQpipelineSync(raw) == 1 else { throw markBroken() }
        let deadline = ContinuousClock.now + limit
        var failure: PostgresError?
        while true {
            // Nil separates the results of two statements.
            guard let result = try nextResult(until: deadline) else { continue }
            if result.status == PGRES_PIPELINE_SYNC { break }
            failure = failure ?? result.error
        }
        guard PQexitPipelineMode(raw) == 1 else { throw markBroken() }
        if let failure { throw recordError(failure) }
    }

    /// Queues the call without waiting or flushing.
    func sendCall(_ call: PreparedCall) throws {
        var texts: [UnsafeMutablePointer<CChar>?] = []
        defer { texts.forEach { free($0) } }
        var values: [UnsafePointer<CChar>?] = []
        var lengths: [Int32] = []
        var formats: [Int32] = []
        for parameter in call.parameters {
            switch parameter {
            case .text(let text):
                let copy = text.map { strdup($0) } ?? nil
                texts.append(copy)
                values.append(copy.map { UnsafePointer($0) })
                lengths.append(0)
                formats.append(0)
            case .array(let array):
                let bytes = array.bytes
                values.append(bytes.assumingMemoryBound(to: CChar.self).baseAddress)
                lengths.append(Int32(bytes.count))
                formats.append(1)
            }
        }
        let sent = withExtendedLifetime(call) {
            PQsendQueryPrepared(raw, call.name, Int32(values.count), values, lengths, formats, 0)
        }
        guard sent == 1 else { throw markBroken() }
    }
}
