/// The position of an entry in the log that hubs share: the epoch, and the entry's number within it.
///
/// An epoch is named by the time it began, in milliseconds since 1970; each new primary, restart or wipe of Redis
/// begins one. Offsets are dense, from 0. The offset −1 is the place before the first entry of an epoch.
package struct LogPlace: Hashable, Comparable, Sendable {
    package var epoch: UInt64
    package var offset: Int64

    /// Decoded places are limited to these values, so that arithmetic on a place, or on one that follows it, cannot overflow.
    ///
    /// At 1,400 entries a second, an epoch fills up in 24 years, and the next one begins. No clock shows a year after 140,000.
    package static let mostOffset: Int64 = 1 << 40
    package static let mostEpoch: UInt64 = 1 << 52

    package init(epoch: UInt64, offset: Int64) {
        self.epoch = epoch
        self.offset = offset
    }

    package static func < (left: LogPlace, right: LogPlace) -> Bool {
        left.epoch == right.epoch ? left.offset < right.offset : left.epoch < right.epoch
    }

    /// Parses the id of a stream's entry, `EPOCH-OFFSET`. Nil for anything else.
    package init?(id: some Collection<UInt8>) {
        let parts = id.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let epoch = DecimalDigits.parseEpoch(parts[0]),
            let offset = DecimalDigits.parseOffset(parts[1])
        else {
            return nil
        }
        self.init(epoch: epoch, offset: offset)
    }

    package var id: String { "\(epoch)-\(offset)" }

    /// The start that makes XRANGE return what follows this place: `(EPOCH-OFFSET`, or `EPOCH-0` before an epoch's first entry.
    package var rangeStart: String { offset < 0 ? "\(epoch)-0" : "(\(id)" }
}

/// The head of the log: its newest entry, and where earlier epochs ended.
package struct LogHead: Equatable, Sendable {
    package var place: LogPlace
    /// The newest entry's tag; 0 if the epoch has no entry.
    package var tag: UInt64
    /// The last places of earlier epochs, newest first.
    package var older: [LogPlace]

    /// The number that the log's script keeps.
    package static let mostOlder = 16

    package init(place: LogPlace, tag: UInt64, older: [LogPlace] = []) {
        self.place = place
        self.tag = tag
        self.older = older
    }

    /// Parses the value of the key `m`: `EPOCH OFFSET REPLID TAG` and, separated by spaces, older heads `EPOCH-OFFSET`,
    /// newest first. Nil for anything else.
    package init?(_ text: some Collection<UInt8>) {
        let parts = text.split(separator: UInt8(ascii: " "), maxSplits: 4 + Self.mostOlder)
        guard parts.count >= 4, parts.count <= 4 + Self.mostOlder, let epoch = DecimalDigits.parseEpoch(parts[0]),
            let offset = DecimalDigits.parseOffset(parts[1]), let tag = DecimalDigits.parseUnsigned(parts[3])
        else { return nil }
        let older = parts.dropFirst(4).compactMap { LogPlace(id: $0) }
        guard older.count == parts.count - 4 else { return nil }
        self.init(place: LogPlace(epoch: epoch, offset: offset), tag: tag, older: older)
    }
}

/// An entry of the log, as published or as read.
package struct LogEntry: Equatable, Sendable {
    package var place: LogPlace
    /// The tag of the entry before, which shows if the log was rewritten.
    package var previous: UInt64
    package var tag: UInt64
    /// A `LogBatch`, encoded.
    package var batch: ArraySlice<UInt8>

    package init(place: LogPlace, previous: UInt64, tag: UInt64, batch: ArraySlice<UInt8>) {
        self.place = place
        self.previous = previous
        self.tag = tag
        self.batch = batch
    }
}

/// Parses numbers from untrusted bytes: digits only, and no more than the type holds.
enum DecimalDigits {
    static func parseUnsigned(_ digits: some Collection<UInt8>) -> UInt64? {
        guard (1...20).contains(digits.count) else { return nil }
        var value: UInt64 = 0
        for byte in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
            if overflow || carry { return nil }
            value = sum
        }
        return value
    }

    /// An offset in an epoch: −1 to `LogPlace.mostOffset`.
    static func parseOffset(_ digits: some Collection<UInt8>) -> Int64? {
        if digits.elementsEqual("-1".utf8) { return -1 }
        guard let value = parseUnsigned(digits), value <= UInt64(LogPlace.mostOffset) else { return nil }
        return Int64(value)
    }

    static func parseEpoch(_ digits: some Collection<UInt8>) -> UInt64? {
        parseUnsigned(digits).flatMap { $0 <= LogPlace.mostEpoch ? $0 : nil }
    }
}
