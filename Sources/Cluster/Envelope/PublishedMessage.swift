/// A message from the subscription: a line that names its kind and, after the line feed, the content.
///
/// For a log entry, the script makes the line `EPOCH OFFSET PREVIOUS TAG`; the other kinds have a word.
package enum PublishedMessage: Equatable, Sendable {
    case entry(LogEntry)
    case beat(HubBeat)
    case direct(DirectMessage)

    private static let beatLine = Array("beat\n".utf8)
    private static let directLine = Array("direct\n".utf8)
    /// Four numbers of twenty digits and the spaces between them.
    private static let longestLine = 4 * 20 + 3

    package static func encode(_ beat: HubBeat) -> [UInt8] { beatLine + beat.encoded() }
    package static func encode(_ direct: DirectMessage) -> [UInt8] { directLine + direct.encoded() }

    /// Encodes an entry as the script publishes it; for tests and stand-ins for Redis.
    package static func encode(_ entry: LogEntry) -> [UInt8] {
        Array("\(entry.place.epoch) \(entry.place.offset) \(entry.previous) \(entry.tag)\n".utf8) + entry.batch
    }

    /// A line that begins with an unknown word comes from a newer hub. The batch of an entry is decoded only when its turn comes.
    package static func decode(_ bytes: ArraySlice<UInt8>) -> Decoded<PublishedMessage> {
        guard let end = bytes.prefix(longestLine + 1).firstIndex(of: UInt8(ascii: "\n")) else { return .malformed }
        let line = bytes[..<end]
        let body = bytes[bytes.index(after: end)...]
        if line.elementsEqual(beatLine.dropLast()) { return HubBeat.decode(body).map(Self.beat) }
        if line.elementsEqual(directLine.dropLast()) { return DirectMessage.decode(body).map(Self.direct) }
        if let first = line.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first) { return .unknownVersion }
        let parts = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 4, let epoch = DecimalDigits.parseEpoch(parts[0]),
            let offset = DecimalDigits.parseOffset(parts[1]), offset >= 0,
            let previous = DecimalDigits.parseUnsigned(parts[2]), let tag = DecimalDigits.parseUnsigned(parts[3])
        else { return .malformed }
        let place = LogPlace(epoch: epoch, offset: offset)
        return .value(.entry(LogEntry(place: place, previous: previous, tag: tag, batch: body)))
    }
}

extension Decoded {
    func map<Other>(_ transform: (Value) -> Other) -> Decoded<Other> {
        switch self {
        case .value(let value): .value(transform(value))
        case .unknownVersion: .unknownVersion
        case .malformed: .malformed
        }
    }
}
