import Foundation

/// The text of an outbox file: a line that says what it is, then a line for each write. No I/O.
enum OutboxLog {
    private struct Header: Codable, Equatable {
        var roost_outbox = 1
    }

    private struct Line: Codable {
        var save: OutboxEntry?
        var remove: UUID?
    }

    /// What a file says.
    struct Content {
        var entries: [UUID: OutboxEntry] = [:]
        /// How many lines follow the header.
        var lines = 0
        /// Where the last whole line ends, in bytes.
        var end = 0
    }

    struct Damage: Error, Equatable {
        let line: Int
    }

    static func header() throws -> Data { try line(Header()) }

    static func saving(_ entry: OutboxEntry) throws -> Data { try line(Line(save: entry)) }

    static func removing(_ localID: UUID) throws -> Data { try line(Line(remove: localID)) }

    /// The last line may be torn, for the process or the power may have ended in the middle of writing it; nobody was
    /// told that it was written, so it does not count. Any other that cannot be read is damage.
    static func read(_ bytes: Data) throws(Damage) -> Content {
        var content = Content()
        let decoder = JSONDecoder()
        var number = 0
        var start = bytes.startIndex
        while start < bytes.endIndex {
            number += 1
            let newline = bytes[start...].firstIndex(of: 0x0A)
            let next = newline.map { $0 + 1 } ?? bytes.endIndex
            let isRead = newline.map { take(bytes[start..<$0], number, into: &content, decoder) } ?? false
            guard isRead else {
                guard next == bytes.endIndex, number > 1 else { throw Damage(line: number) }
                return content
            }
            start = next
            content.end = next - bytes.startIndex
        }
        return content
    }

    private static func take(_ bytes: Data, _ number: Int, into content: inout Content, _ decoder: JSONDecoder) -> Bool
    {
        do {
            if number == 1 { return try decoder.decode(Header.self, from: bytes) == Header() }
            let line = try decoder.decode(Line.self, from: bytes)
            if let entry = line.save {
                content.entries[entry.localID] = entry
            } else if let localID = line.remove {
                content.entries[localID] = nil
            } else {
                return false
            }
            content.lines += 1
            return true
        } catch {
            return false
        }
    }

    private static func line(_ value: some Encodable) throws -> Data {
        var bytes = try JSONEncoder().encode(value)
        // JSON escapes the newlines within its strings.
        bytes.append(0x0A)
        return bytes
    }
}
