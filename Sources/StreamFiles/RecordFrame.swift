package import Streams
import Wire

/// The form of a record in a stream's file: its length, a checksum, its kind, facts as JSON, and its bytes.
///
/// Numbers are little-endian. The checksum reveals damage.
package enum RecordFrame {
    static let headBytes = 8
    private enum Kind: UInt8 { case created = 1, appended, held, ended, closing, closed, reopened, continued }

    // MARK: Writing

    package static func append(_ record: StreamRecord, to out: inout [UInt8]) {
        let start = out.count
        out += [UInt8](repeating: 0, count: headBytes)
        switch record {
        case .created(let id, let name, let configuration, let at):
            appendHead(.created, &out, JSONWriter.object { writeCreation(id, name, configuration, at, &$0) })
        case .continued(let checkpoint): appendHead(.continued, &out, checkpointFacts(checkpoint))
        case .appended(let bytes, let ending, let producer, let sequence):
            appendHead(.appended, &out, recordFacts(producer, sequence, ending))
            out += bytes
        case .closing(let bytes, let ending, let producer, let sequence):
            appendHead(.closing, &out, recordFacts(producer, sequence, ending))
            out += bytes
        case .closed(let row):
            appendHead(.closed, &out, JSONWriter.object { facts in if let row { facts.writeMember("row", json: row) } })
        case .reopened: appendHead(.reopened, &out, Array("{}".utf8))
        case .held: appendHead(.held, &out, Array("{}".utf8))
        case .ended(let ending): appendHead(.ended, &out, JSONWriter.object { writeEnding(ending, &$0) })
        }
        let length = out.count - start - headBytes
        setNumber(UInt32(length), in: &out, at: start)
        setNumber(Checksum.computeSum(out[(start + headBytes)...]), in: &out, at: start + 4)
    }

    /// Adds length and checksum to a record's body.
    package static func framedBody(_ body: ArraySlice<UInt8>) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: headBytes) + body
        setNumber(UInt32(body.count), in: &out, at: 0)
        setNumber(Checksum.computeSum(body), in: &out, at: 4)
        return out
    }

    private static func appendHead(_ kind: Kind, _ out: inout [UInt8], _ facts: [UInt8]) {
        out.append(kind.rawValue)
        let place = out.count
        out += [0, 0, 0, 0]
        setNumber(UInt32(facts.count), in: &out, at: place)
        out += facts
    }

    private static func writeCreation(
        _ id: StreamID, _ name: StreamName, _ configuration: StreamConfiguration, _ at: Int64, _ facts: inout JSONWriter
    ) {
        facts.writeMember("id", String(id.number, radix: 16))
        facts.writeMember("name", name.text)
        facts.writeMember("type", configuration.contentType)
        facts.writeMember("at", at)
        switch configuration.lifetime {
        case .unlimited: break
        case .idle(let seconds): facts.writeMember("ttl", seconds)
        case .until(let time): facts.writeMember("until", time)
        }
        if let lease = configuration.lease { facts.writeMember("lease", lease) }
        if let gathering = configuration.gathering { facts.writeMember("gathering", gathering) }
        switch configuration.owner {
        case .user(let subject): facts.writeMember("user", subject.text)
        case .role(let name): facts.writeMember("role", name.text)
        case nil: break
        }
    }

    private static func recordFacts(
        _ producer: ProducerStamp?, _ sequence: String?, _ ending: StreamEnding?
    ) -> [UInt8] {
        JSONWriter.object { facts in
            if let producer {
                facts.writeMember("producer", producer.id.text)
                facts.writeMember("epoch", producer.epoch)
                facts.writeMember("seq", producer.sequence)
            }
            if let sequence { facts.writeMember("order", sequence) }
            if let ending { writeEnding(ending, &facts) }
        }
    }

    private static func writeEnding(_ ending: StreamEnding, _ facts: inout JSONWriter) {
        facts.writeMember("reason", ending.reason.rawValue)
        facts.writeMember("ended", ending.at)
        if let row = ending.row { facts.writeMember("row", json: row) }
    }

    private static func setNumber(_ number: UInt32, in out: inout [UInt8], at place: Int) {
        for byte in 0..<4 { out[place + byte] = UInt8(truncatingIfNeeded: number >> (8 * UInt32(byte))) }
    }

    // MARK: Reading

    /// The records of a file, up to the first invalid one.
    ///
    /// - Returns: the records and where they end; the file's length if all are intact.
    package static func records(in bytes: [UInt8]) -> (records: [StreamRecord], end: Int) {
        var records: [StreamRecord] = []
        var at = 0
        while bytes.count - at >= headBytes {
            let length = Int(readNumber(bytes, at))
            guard length > 0, length <= bytes.count - at - headBytes else { break }
            let body = bytes[(at + headBytes)..<(at + headBytes + length)]
            guard Checksum.computeSum(body) == readNumber(bytes, at + 4), let record = parseRecord(body) else { break }
            records.append(record)
            at += headBytes + length
        }
        return (records, at)
    }

    /// The placeholder for the head of a write's first record until the rest of the write is complete: no record has this length.
    static let unfinished: [UInt8] = [0, 0, 0, 0] + Array("open".utf8)

    /// Whether the unreadable bytes from `end` on are a write that was cut off by a kill: its head, which is written
    /// last, is missing (`StreamFolder.append`).
    ///
    /// When the machine stops, a file system leaves zeros for bytes it had not written. But records after such zeros
    /// were written whole, and may have been acknowledged.
    static func isTorn(_ bytes: [UInt8], at end: Int) -> Bool {
        let head = bytes[end...].prefix(headBytes)
        if unfinished.starts(with: head) { return true }
        return head.allSatisfy { $0 == 0 } && !hasRecord(bytes, behind: end + headBytes)
    }

    /// How far to search for a record, and how many bytes to check.
    private static let (mostSearched, mostChecked) = (16_777_216, 268_435_456)

    /// Whether a record begins anywhere after a place.
    private static func hasRecord(_ bytes: [UInt8], behind place: Int) -> Bool {
        var checked = 0
        for at in place..<max(place, min(bytes.count - headBytes, place + mostSearched)) {
            let length = Int(readNumber(bytes, at))
            // Other bytes seldom have a plausible length, kind, and facts that begin and end with a brace.
            guard length >= 7, length <= bytes.count - at - headBytes, Kind(rawValue: bytes[at + headBytes]) != nil
            else { continue }
            let facts = Int(readNumber(bytes, at + headBytes + 1))
            guard facts >= 2, facts <= length - 5, bytes[at + headBytes + 5] == UInt8(ascii: "{"),
                bytes[at + headBytes + 4 + facts] == UInt8(ascii: "}"), checked + length <= mostChecked
            else { continue }
            checked += length
            if Checksum.computeSum(bytes[(at + headBytes)..<(at + headBytes + length)]) == readNumber(bytes, at + 4) {
                return true
            }
        }
        return false
    }

    /// The number of leading bytes that form whole records; only the first may exceed `most`.
    static func wholeBytes(in bytes: [UInt8], most: Int) -> Int {
        var at = 0
        while bytes.count - at >= headBytes {
            let next = at + headBytes + Int(readNumber(bytes, at))
            guard next <= bytes.count, at == 0 || next <= most else { break }
            at = next
        }
        return at
    }

    private static func readNumber(_ bytes: [UInt8], _ at: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(bytes[at + $1]) << (8 * UInt32($1)) }
    }

    private static func parseRecord(_ body: ArraySlice<UInt8>) -> StreamRecord? {
        guard body.count >= 5, let kind = Kind(rawValue: body[body.startIndex]) else { return nil }
        let body = Array(body)
        let length = Int(readNumber(body, 1))
        guard length <= body.count - 5 else { return nil }
        let facts: JSON
        do { facts = try JSON(parsing: body[5..<(5 + length)]) } catch { return nil }
        switch kind {
        case .created: return parseCreated(facts)
        case .held: return .held
        case .continued: return parseCheckpoint(facts).map { .continued($0) }
        case .ended: return parseEnding(facts).map { .ended($0) }
        case .appended:
            guard let producer = parseStamp(facts), facts["reason"] == nil || parseEnding(facts) != nil else {
                return nil
            }
            return .appended(
                Array(body[(5 + length)...]), parseEnding(facts), producer: producer, sequence: facts["order"]?.string)
        case .closing:
            guard let producer = parseStamp(facts), let ending = parseEnding(facts) else { return nil }
            return .closing(
                Array(body[(5 + length)...]), ending, producer: producer, sequence: facts["order"]?.string)
        case .closed: return .closed(row: facts["row"].map { Array($0.bytes) })
        case .reopened: return .reopened
        }
    }

    // A program that writes into the folder or into Redis can write anything: numbers out of the usable range make a record invalid.

    /// - Returns: nil if a producer is named but invalid.
    private static func parseStamp(_ facts: JSON) -> ProducerStamp?? {
        guard let producer = facts["producer"] else { return .some(nil) }
        guard let id = producer.string, let epoch = facts["epoch"]?.int, let sequence = facts["seq"]?.int else {
            return nil
        }
        guard let stamp = ProducerStamp(told: id, epoch: epoch, sequence: sequence) else { return nil }
        return .some(stamp)
    }

    /// A time in milliseconds since 1970.
    private static func parseTime(_ json: JSON?) -> Int64? {
        json?.int.flatMap { -(1 << 53)...(1 << 53) ~= $0 ? Int64($0) : nil }
    }

    /// A duration in seconds.
    private static func parseDuration(_ json: JSON) -> Int? {
        json.int.flatMap { 0...(1 << 40) ~= $0 ? $0 : nil }
    }

    private static func parseCreated(_ facts: JSON) -> StreamRecord? {
        guard let id = facts["id"]?.string.flatMap({ UInt64($0, radix: 16) }),
            let name = facts["name"]?.string.flatMap({ StreamName($0) }), let type = facts["type"]?.string,
            let at = parseTime(facts["at"])
        else { return nil }
        var configuration = StreamConfiguration(contentType: type)
        if let ttl = facts["ttl"] {
            guard let seconds = parseDuration(ttl) else { return nil }
            configuration.lifetime = .idle(seconds: seconds)
        }
        if let until = facts["until"] {
            guard let time = parseTime(until) else { return nil }
            configuration.lifetime = .until(time)
        }
        if let lease = facts["lease"] {
            guard let seconds = parseDuration(lease) else { return nil }
            configuration.lease = seconds
        }
        if let gathering = facts["gathering"] {
            guard let time = parseDuration(gathering) else { return nil }
            configuration.gathering = time
        }
        configuration.owner =
            facts["user"]?.string.map { .user(Name($0)) } ?? facts["role"]?.string.map { .role(Name($0)) }
        return .created(StreamID(id), name, configuration, at: at)
    }

    private static func parseEnding(_ facts: JSON) -> StreamEnding? {
        guard let reason = facts["reason"]?.string.flatMap({ StreamEnding.Reason(rawValue: $0) }),
            let at = parseTime(facts["ended"])
        else { return nil }
        return StreamEnding(reason, at: at, row: facts["row"].map { Array($0.bytes) })
    }
}

/// CRC-32 with the polynomial of Ethernet (ISO 3309), one byte at a time.
private enum Checksum {
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }

    static func computeSum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var sum: UInt32 = 0xFFFF_FFFF
        table.withUnsafeBufferPointer { table in
            bytes.withUnsafeBytes {
                for byte in $0 { sum = table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] ^ sum >> 8 }
            }
        }
        return ~sum
    }
}
