import Wire

extension NotificationMapping {
    /// Parses mappings in the form of the setting `notify.channels`, separated by commas or line breaks: `messages ->
    /// room:{conversation_id} / new_message, jobs -> public jobs / done`.
    ///
    /// - Parameter privateOnly: public channels are disabled.
    /// - Throws: `MappingError` for the first invalid mapping.
    package static func parseList(_ text: String, privateOnly: Bool = false) throws(MappingError)
        -> [NotificationMapping]
    {
        var mappings: [NotificationMapping] = []
        for entry in text.split(whereSeparator: { $0 == "," || $0.isNewline }) {
            let entry = trimmed(entry)
            guard !entry.isEmpty else { continue }
            let mapping = try NotificationMapping(entry)
            guard mapping.isPrivate || !privateOnly else {
                throw MappingError(
                    entry,
                    "nobody may join a public channel while limits.private_only is true; take the word public away")
            }
            guard !mappings.contains(mapping) else {
                throw MappingError(
                    entry, "it stands there twice, and members would get each message twice; take one away")
            }
            mappings.append(mapping)
        }
        return mappings
    }

    init(_ entry: Substring) throws(MappingError) {
        func fails(_ problem: String) -> MappingError { MappingError(entry, problem) }
        guard let arrow = entry.firstRange(of: "->") ?? entry.firstRange(of: "→") else {
            throw fails("it has no arrow; write CHANNEL -> TOPIC / EVENT")
        }
        let channel = Self.trimmed(entry[..<arrow.lowerBound])
        if let problem = Self.channelProblem(withChannel: channel) { throw fails(problem) }
        let target = Self.trimmed(entry[arrow.upperBound...])
        guard let slash = target.lastIndex(of: "/") else {
            throw fails("it names no event; write CHANNEL -> TOPIC / EVENT")
        }
        var topic = Self.trimmed(target[..<slash])
        let event = Self.trimmed(target[target.index(after: slash)...])
        let access = topic.prefix { !$0.isWhitespace }
        let namesAccess = access == "public" || access == "private"
        if namesAccess { topic = Self.trimmed(topic[access.endIndex...]) }
        guard !topic.isEmpty else { throw fails("it names no topic; write CHANNEL -> TOPIC / EVENT") }
        guard !event.isEmpty else { throw fails("it names no event; write CHANNEL -> TOPIC / EVENT") }
        guard !topic.hasPrefix("realtime:") else { throw fails("write the topic without realtime:") }
        do {
            self.topic = try TextTemplate(String(topic), hasPaths: true)
            self.event = try TextTemplate(String(event), hasPaths: true)
        } catch {
            throw fails(error.problem)
        }
        self.channel = String(channel)
        isPrivate = !namesAccess || access == "private"
    }

    private static func channelProblem(withChannel name: Substring) -> String? {
        if name.isEmpty { return "it names no channel of Postgres; write CHANNEL -> TOPIC / EVENT" }
        if name == "roost" { return "the channel roost is the hub's own; notify on another one" }
        // NAMEDATALEN of Postgres, less the terminating byte; pg_notify refuses longer names, LISTEN truncates them.
        if name.utf8.count > 63 { return "Postgres takes no channel of more than 63 bytes; choose a shorter one" }
        guard name.contains(where: { $0.isWhitespace || $0 == "\"" || $0 == "'" || $0 == "{" }) else { return nil }
        return "a channel is one name without quotes, as pg_notify takes it; write that"
    }

    private static func trimmed(_ text: Substring) -> Substring {
        guard let last = text.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return text[...last].drop(while: \.isWhitespace)
    }
}

/// An invalid mapping in `notify.channels`.
package struct MappingError: Error, Equatable, CustomStringConvertible {
    /// The mapping in quotes, then after a colon the problem and its remedy, without a full stop.
    package let description: String

    init(_ entry: Substring, _ problem: String) { description = "'\(entry.prefix(80))': \(problem)" }
}
