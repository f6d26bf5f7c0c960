/// The kind of a setting's value, and its parsing from the text of a file, a variable or a flag.
///
/// The rules are the same for all three, so that a value can be moved between them unchanged.
package enum Kind: Sendable {
    /// A whole number within bounds.
    case integer(ClosedRange<Int>)
    /// On or off.
    case toggle
    /// One of a few words.
    case choice([String])
    /// A host name or an address to listen on.
    case host
    /// A short name without spaces.
    case name
    /// A Postgres connection string.
    case connection
    /// A secret with a minimum length in bytes.
    case secret(minimumBytes: Int)
    /// Several secrets, separated by white space.
    case secrets(minimumBytes: Int)
    /// Words separated by commas or white space, from a list if there is one.
    case words(from: [String]?)
    /// The path of a file.
    case path
    /// A file's permissions, in octal.
    case mode
    /// Origins of web pages (RFC 6454), separated by commas.
    case origins
    /// Addresses and networks, separated by commas.
    case networks
    /// An http or https URL.
    case webURL
    /// The address of Redis or Valkey; its details are checked on connecting.
    case redisURL
    /// Presence windows for topics: `PATTERN=ACTIVE/INACTIVE/BACKGROUND`, in seconds, separated by commas.
    case windows
    /// Columns: `SCHEMA.TABLE.COLUMN`, separated by commas.
    case columns
    /// An SQL statement that takes three parameters.
    case statement
    /// An SQL statement that takes one parameter.
    case query
    /// An SQL statement that takes $1, or a list of entries with such statements; the entries are checked elsewhere.
    case closes
    /// A list of entries, which are checked elsewhere.
    case entries
    /// An app's bundle ID.
    case bundle
    /// An ID of `length` letters and digits.
    case code(length: Int)
    /// A private key.
    case pem
    /// Tables: `SCHEMA.TABLE`, separated by commas.
    case tables
    /// Text with `{variables}`, which are checked elsewhere.
    case template
    /// A JSON object with such texts.
    case json
    /// Mappings of notifications: `CHANNEL -> TOPIC / EVENT`, separated by commas or line breaks; checked by the
    /// listener.
    case mappings
    /// Columns with a time: `SCHEMA.TABLE.COLUMN unless CONDITION`, separated by semicolons or line breaks; checked
    /// elsewhere.
    case timedColumns

    /// The name in `roost config print --json`, for programs that make or check configurations.
    package var name: String {
        switch self {
        case .integer: "integer"
        case .toggle: "toggle"
        case .choice: "choice"
        case .host: "host"
        case .name: "name"
        case .connection: "connection"
        case .secret: "secret"
        case .secrets: "secrets"
        case .words(.some): "choices"
        case .words(nil): "words"
        case .path: "path"
        case .mode: "mode"
        case .origins: "origins"
        case .networks: "networks"
        case .webURL: "url"
        case .redisURL: "redis_url"
        case .windows: "windows"
        case .columns: "columns"
        case .statement: "statement"
        case .query: "query"
        case .closes: "closes"
        case .entries: "entries"
        case .bundle: "bundle"
        case .code: "code"
        case .pem: "pem"
        case .tables: "tables"
        case .template: "template"
        case .json: "json"
        case .mappings: "mappings"
        case .timedColumns: "timed_columns"
        }
    }

    /// Completes the sentence "expected …".
    package var expectation: String {
        switch self {
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .toggle: "true or false"
        case .choice(let words): "one of " + words.joined(separator: ", ")
        case .host: "a host name or an address, such as 127.0.0.1, 0.0.0.0 or ::1"
        case .name: "1 to 63 letters, digits, '-' or '_'"
        case .connection: "a connection string such as postgres://USER:PASSWORD@HOST:5432/DATABASE"
        case .secrets(let bytes): "secrets of at least \(bytes) bytes each, with a space between them"
        case .words(let allowed?): "one or more of " + allowed.joined(separator: ", ")
        case .words(nil): "words with commas between them"
        case .path: "the path of a file"
        case .mode: "three octal digits with a 0 before them, such as 0660"
        case .origins: "origins such as https://app.example.com or https://*.example.com, with commas between them"
        case .networks: "addresses and networks such as 127.0.0.1, 10.0.0.0/8 or unix, with commas between them"
        case .windows: "PATTERN=ACTIVE/INACTIVE/BACKGROUND with 0 to 120 seconds each, such as room:*=5/30/60"
        case .columns: "columns such as public.messages.sender_id, with commas between them"
        case .statement: "an SQL statement that takes $1, $2 and $3"
        case .query: "an SQL statement that takes $1"
        case .closes: "an SQL statement that takes $1, or a list of entries with such statements"
        case .entries: "a list of entries"
        case .bundle: "a bundle id such as com.example.app"
        case .code(let length): "\(length) letters and digits"
        case .pem: "a private key that begins with -----BEGIN PRIVATE KEY-----"
        case .tables: "tables such as public.messages, with commas between them"
        case .template: "a text"
        case .json: "a JSON object"
        case .mappings: "mappings such as messages -> room:{conversation_id} / new_message, with commas between them"
        case .timedColumns:
            "columns such as public.reminders.reminder_time unless done_at is not null, with semicolons between them"
        case .webURL: "a URL that begins with https:// or http://"
        case .redisURL:
            "a URL such as redis://USER:PASSWORD@HOST:6379, rediss://HOST, unix:///run/redis/redis.sock or redis+sentinel://HOST:26379/NAME"
        case .secret(let bytes): "at least \(bytes) bytes (`openssl rand -hex 32` makes a good one)"
        }
    }

    /// Nil if `text` is no valid value.
    func parseValue(_ text: String) -> SettingValue? {
        switch self {
        case .integer(let range):
            guard let number = Self.parseInteger(text), range.contains(number) else { return nil }
            return .integer(number)
        case .toggle:
            return Self.parseToggle(text).map { .toggle($0) }
        case .choice(let words):
            return words.first { $0 == text.lowercased() }.map { .text($0) }
        case .host:
            return HostText.isHost(text) ? .text(text) : nil
        case .name:
            let isName = text.utf8.count <= 63 && text.utf8.allSatisfy(Self.isNameByte)
            return isName ? .text(text) : nil
        case .connection:
            let isConnection = ["postgres://", "postgresql://"].contains { text.hasPrefix($0) } || text.contains("=")
            return isConnection ? .text(text) : nil
        case .secret(let bytes):
            return text.utf8.count >= bytes ? .text(text) : nil
        case .secrets(let bytes):
            let secrets = Self.splitWords(in: text, separators: "")
            return secrets.allSatisfy { $0.utf8.count >= bytes } && !secrets.isEmpty ? .text(text) : nil
        case .words(let allowed):
            let words = Self.splitWords(in: text, separators: ",")
            return words.allSatisfy { allowed?.contains($0) ?? true } && !words.isEmpty ? .text(text) : nil
        case .path:
            return text.contains("\0") ? nil : .text(text)
        case .mode:
            return Self.isMode(text) ? .text(text) : nil
        case .origins:
            let words = Self.splitWords(in: text, separators: ",")
            return !words.isEmpty && words.allSatisfy(Self.isOrigin) ? .text(text) : nil
        case .networks:
            let words = Self.splitWords(in: text, separators: ",")
            return !words.isEmpty && words.allSatisfy(Self.isNetwork) ? .text(text) : nil
        case .redisURL:
            let schemes = ["redis://", "rediss://", "unix://", "redis+sentinel://", "rediss+sentinel://"]
            return schemes.contains { text.hasPrefix($0) } ? .text(text) : nil
        case .webURL:
            return HostText.isWebURL(text) ? .text(text) : nil
        case .windows:
            let words = Self.splitWords(in: text, separators: ",")
            return !words.isEmpty && words.allSatisfy { TopicWindows($0) != nil } ? .text(text) : nil
        case .columns:
            let words = Self.splitWords(in: text, separators: ",")
            let areColumns = words.allSatisfy { word in
                let parts = word.split(separator: ".", omittingEmptySubsequences: false)
                return parts.count == 3 && !parts.contains("")
            }
            return areColumns && !words.isEmpty ? .text(text) : nil
        case .statement:
            return ["$1", "$2", "$3"].allSatisfy(text.contains) ? .text(text) : nil
        case .query:
            return text.contains("$1") ? .text(text) : nil
        case .closes:
            return text.contains("$1") && (!Self.beginsList(text) || Self.isList(text)) ? .text(text) : nil
        case .entries:
            return Self.isList(text) ? .text(text) : nil
        case .bundle:
            let isBundle = text.utf8.allSatisfy { Self.isNameByte($0) || $0 == UInt8(ascii: ".") }
            return isBundle && text.utf8.count <= 255 ? .text(text) : nil
        case .code(let length):
            let isCode = text.utf8.count == length && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
            return isCode ? .text(text) : nil
        case .pem:
            return text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") ? .text(text) : nil
        case .tables:
            let words = Self.splitWords(in: text, separators: ",")
            let areTables = words.allSatisfy { word in
                let parts = word.split(separator: ".", omittingEmptySubsequences: false)
                return parts.count == 2 && !parts.contains("")
            }
            return areTables && !words.isEmpty ? .text(text) : nil
        case .template, .mappings, .timedColumns:
            return .text(text)
        case .json:
            let trimmed = text.filter { !$0.isWhitespace }
            return trimmed.hasPrefix("{") && trimmed.hasSuffix("}") ? .text(text) : nil
        }
    }

    /// Whether a file may write it as YAML keys, values and lists.
    var isStructured: Bool {
        switch self {
        case .json, .closes, .entries: true
        default: false
        }
    }

    private static func beginsList(_ text: String) -> Bool { text.first { !$0.isWhitespace } == "[" }

    private static func isList(_ text: String) -> Bool {
        beginsList(text) && text.last { !$0.isWhitespace } == "]"
    }

    /// Splits a text at `separators` and white space.
    static func splitWords(in text: String, separators: String) -> [String] {
        text.split { $0.isWhitespace || separators.contains($0) }.map(String.init)
    }

    /// Digits, optionally with underscores between them: 5_000_000.
    private static func parseInteger(_ text: String) -> Int? {
        guard !text.hasPrefix("_"), !text.hasSuffix("_"), !text.contains("__") else { return nil }
        return Int(text.replacing("_", with: ""))
    }

    private static func parseToggle(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "yes", "on", "1": true
        case "false", "no", "off", "0": false
        default: nil
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// The time for which a disconnected client counts as present on topics that match a pattern: `room:*=5/30/60`, in seconds.
package struct TopicWindows: Sendable, Equatable {
    package let pattern: String
    package let active: Int
    package let inactive: Int
    package let background: Int

    /// Nil if `text` has another form.
    init?(_ text: String) {
        // A topic may contain an equals sign, the windows cannot.
        guard let sign = text.lastIndex(of: "="), sign > text.startIndex else { return nil }
        let seconds = text[text.index(after: sign)...].split(separator: "/", omittingEmptySubsequences: false)
            .map { Int($0) ?? -1 }
        guard seconds.count == 3, seconds.allSatisfy((0...120).contains) else { return nil }
        pattern = String(text[..<sign])
        (active, inactive, background) = (seconds[0], seconds[1], seconds[2])
    }
}
