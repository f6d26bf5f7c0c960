import Capture
import Testing

/// What the stream's messages become, without a server.
@Suite struct DecoderTests {
    private func message(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap { $0 } }

    private func bytes<Integer: FixedWidthInteger>(_ value: Integer) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    private func begin(_ commit: UInt64) -> [UInt8] {
        message([0x42], bytes(commit), bytes(Int64(7)), bytes(UInt32(1)))
    }

    private func commit(_ place: UInt64, end: UInt64) -> [UInt8] {
        message([0x43, 0], bytes(place), bytes(end), bytes(Int64(7)))
    }

    /// Table 5 with the columns id (int4, the identity) and body (text).
    private var relation: [UInt8] {
        message(
            [0x52], bytes(UInt32(5)), [0x70, 0, 0x74, 0, 0x64], bytes(UInt16(2)),
            [1, 0x69, 0x64, 0], bytes(UInt32(23)), bytes(Int32(-1)),
            [0, 0x62, 0], bytes(UInt32(25)), bytes(Int32(-1)))
    }

    private func insert(_ id: String, _ body: String) -> [UInt8] {
        message(
            [0x49], bytes(UInt32(5)), [0x4E], bytes(UInt16(2)),
            [0x74], bytes(UInt32(id.utf8.count)), Array(id.utf8), [0x74], bytes(UInt32(body.utf8.count)),
            Array(body.utf8))
    }

    private func feed(_ messages: [UInt8]..., to decoder: inout CaptureDecoder, _ batch: CaptureBatch) throws {
        for message in messages {
            try message.withUnsafeBytes { try decoder.decodeMessage(PgoutputMessage($0), into: batch) }
        }
    }

    @Test func whatIsStoredFollowsTheCommits() throws {
        var decoder = CaptureDecoder(after: CapturePosition(lsn: LSN(50)))
        let batch = CaptureBatch()
        try feed(begin(100), relation, insert("1", "a"), insert("2", "b"), to: &decoder, batch)
        #expect(decoder.isInTransaction)
        #expect(decoder.position == CapturePosition(lsn: LSN(50), part: .init(commit: LSN(100), rows: 2)))
        try feed(commit(100, end: 110), begin(120), commit(120, end: 130), to: &decoder, batch)
        #expect(!decoder.isInTransaction)
        #expect(decoder.position == CapturePosition(lsn: LSN(130)))
        #expect(batch.rows == 2)
        #expect(batch.transactions == 2)
        #expect(batch.groups.map(\.places.count) == [2])
        #expect(batch.xids == [1])
    }

    @Test("what was stored before a stream began anew is not stored again, whole or in part")
    func passesOver() throws {
        let part = CapturePosition(lsn: LSN(110), part: .init(commit: LSN(120), rows: 2))
        var decoder = CaptureDecoder(after: part)
        let batch = CaptureBatch()
        try feed(begin(100), relation, insert("1", "a"), commit(100, end: 110), to: &decoder, batch)
        #expect(batch.isEmpty)
        #expect(decoder.position == part)
        try feed(begin(120), insert("2", "a"), insert("3", "b"), to: &decoder, batch)
        #expect(batch.isEmpty)
        try feed(insert("4", "c"), commit(120, end: 130), to: &decoder, batch)
        #expect(batch.rows == 1)
        #expect(decoder.position == CapturePosition(lsn: LSN(130)))
    }

    @Test func rowsOfOneShapeShareAStatement() throws {
        var decoder = CaptureDecoder(after: CapturePosition(lsn: LSN(0)))
        let batch = CaptureBatch()
        let long = String(repeating: "x", count: 200_000)
        try feed(begin(10), relation, insert("1", "a"), insert("2", long), insert("3", "b"), to: &decoder, batch)
        #expect(batch.groups.map(\.shape.size) == [.small, .large])
        #expect(batch.groups.map(\.places.count) == [2, 1])
        // Described anew, it is another table.
        try feed(relation, insert("4", "d"), to: &decoder, batch)
        #expect(batch.groups.count == 3)
    }

    @Test("every message that is cut short is refused, and none ends the process")
    func cutShort() throws {
        for whole in [begin(1), commit(1, end: 2), relation, insert("12", "abc")] {
            for length in 0..<whole.count {
                whole[..<length].withUnsafeBytes { bytes in
                    #expect(throws: MalformedStream.self) { try PgoutputMessage(bytes) }
                }
            }
        }
        var decoder = CaptureDecoder(after: CapturePosition(lsn: LSN(0)))
        let batch = CaptureBatch()
        // A table that nobody described; a change outside a transaction; more columns than the table has.
        #expect(throws: MalformedStream.self) { try feed(begin(1), insert("1", "a"), to: &decoder, batch) }
        #expect(throws: MalformedStream.self) {
            try feed(relation, commit(1, end: 2), insert("1", "a"), to: &decoder, batch)
        }
        let wide = message([0x49], bytes(UInt32(5)), [0x4E], bytes(UInt16(3)), [0x6E, 0x6E, 0x6E])
        #expect(throws: MalformedStream.self) { try feed(begin(3), wide, to: &decoder, batch) }
    }

    @Test func placesInTheLogReadAsPostgresWritesThem() {
        #expect(LSN("16/B374D848")?.description == "16/B374D848")
        #expect(LSN("0/0") == LSN(0))
        #expect(LSN("FFFFFFFF/FFFFFFFF") == LSN(.max))
        #expect(LSN("16") == nil && LSN("x/1") == nil && LSN("1/2/3") == nil && LSN("100000000/0") == nil)
    }
}
