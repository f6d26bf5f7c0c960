/// The sign of life that each hub publishes every half second, with what others must have received from it by now.
///
/// Version 1, in this order: version, flags (1 byte each), name, boot, number, `since`, `base`, `place`, `settled`,
/// `digest` (8 bytes), `digestSequence`, protocol, the figures (a count, then each), the ended hubs likewise, and
/// `software` with its length. Unknown flags are ignored, and so are bytes after these fields, which a newer hub may send.
package struct HubBeat: Equatable, Sendable {
    package static let version: UInt8 = 1
    package static let mostFigures = 32

    package static let mostEnded = 16
    package static let longestSoftware = 64

    /// A hub that ended without saying good-bye.
    package struct Ended: Hashable, Sendable {
        package var hub: HubIdentity
        package var since: LogPlace
        /// Milliseconds since the hub was last heard.
        package var silence: Int64

        package init(hub: HubIdentity, since: LogPlace, silence: Int64) {
            self.hub = hub
            self.since = since
            self.silence = silence
        }
    }

    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The hub accepts no new clients and asks its clients to go elsewhere.
        package static let draining = Flags(rawValue: 1)
        /// The hub's last beat: it has no members any more and is about to end.
        package static let leaving = Flags(rawValue: 2)
    }

    package var hub: HubIdentity
    /// Counts this boot's beats, from 1.
    package var number: UInt64
    /// As in `LogBatch`.
    package var since: LogPlace
    package var base: UInt64
    /// The head of the log as this hub last knew it. Its epoch is the one that the hub writes in.
    package var place: LogPlace
    /// Each sequence up to this one is in the log at `place` or earlier, or never will be.
    package var settled: UInt64
    /// The digest of the members that the hub owns, right after its message `digestSequence`.
    package var digest: UInt64
    package var digestSequence: UInt64
    /// The newest version of the message format that this hub understands.
    package var protocolVersion: UInt64
    package var flags: Flags
    /// Numbers for the operator's page, identified by position. A hub may send fewer or more.
    package var figures: [UInt64]
    /// Hubs whose end was noticed within the last minute, for hubs that were cut off during their whole life.
    package var ended: [Ended]
    /// The hub's version of Roost, as people write it; nil if the hub does not send it.
    package var software: String?

    package init(
        hub: HubIdentity, number: UInt64, since: LogPlace, base: UInt64 = 0, place: LogPlace, settled: UInt64,
        digest: UInt64 = 0,
        digestSequence: UInt64 = 0, protocolVersion: UInt64 = 1, flags: Flags = [], figures: [UInt64] = [],
        ended: [Ended] = [], software: String? = nil
    ) {
        self.hub = hub
        self.number = number
        self.since = since
        self.base = base
        self.place = place
        self.settled = settled
        self.digest = digest
        self.digestSequence = digestSequence
        self.protocolVersion = protocolVersion
        self.flags = flags
        self.figures = figures
        self.ended = ended
        self.software = software
    }

    package func encoded() -> [UInt8] {
        var writer = EnvelopeWriter()
        writer.appendByte(Self.version)
        writer.appendByte(flags.rawValue)
        writer.appendIdentity(hub)
        writer.appendVarint(number)
        writer.appendPlace(since)
        writer.appendVarint(base)
        writer.appendPlace(place)
        writer.appendVarint(settled)
        writer.appendFixed(digest)
        writer.appendVarint(digestSequence)
        writer.appendVarint(protocolVersion)
        let figures = figures.prefix(Self.mostFigures)
        writer.appendVarint(UInt64(figures.count))
        for figure in figures { writer.appendVarint(figure) }
        let ended = ended.prefix(Self.mostEnded)
        writer.appendVarint(UInt64(ended.count))
        for end in ended {
            writer.appendIdentity(end.hub)
            writer.appendPlace(end.since)
            writer.appendVarint(UInt64(max(0, end.silence)))
        }
        if let software { writer.appendBlob(software.utf8.prefix(Self.longestSoftware)) }
        return writer.bytes
    }

    package static func decode(_ bytes: ArraySlice<UInt8>) -> Decoded<HubBeat> {
        var reader = EnvelopeReader(bytes)
        guard let version = reader.readByte() else { return .malformed }
        guard version == Self.version else { return .unknownVersion }
        guard let flags = reader.readByte(), let hub = reader.readIdentity(), let number = reader.readVarint(),
            let since = reader.readPlace(), let base = reader.readSequence(), let place = reader.readPlace(),
            let settled = reader.readSequence(), base <= settled,
            let digest = reader.readFixed(), let digestSequence = reader.readSequence(),
            let protocolVersion = reader.readVarint(),
            let count = reader.readVarint(), count <= UInt64(mostFigures)
        else { return .malformed }
        var figures: [UInt64] = []
        for _ in 0..<count {
            guard let figure = reader.readVarint() else { return .malformed }
            figures.append(figure)
        }
        guard let count = reader.readVarint(), count <= UInt64(mostEnded) else { return .malformed }
        var ended: [Ended] = []
        for _ in 0..<count {
            guard let hub = reader.readIdentity(), let since = reader.readPlace(), let silence = reader.readVarint(),
                silence <= UInt64(Int32.max)
            else { return .malformed }
            ended.append(Ended(hub: hub, since: since, silence: Int64(silence)))
        }
        var software: String?
        if !reader.isAtEnd {
            guard let text = reader.readBlob(), (1...longestSoftware).contains(text.count),
                text.allSatisfy({ (0x21...0x7e).contains($0) })
            else { return .malformed }
            software = String(decoding: text, as: UTF8.self)
        }
        return .value(
            HubBeat(
                hub: hub, number: number, since: since, base: base, place: place, settled: settled, digest: digest,
                digestSequence: digestSequence, protocolVersion: protocolVersion, flags: Flags(rawValue: flags),
                figures: figures, ended: ended, software: software))
    }
}
