package import Wire

/// One page of a channel's presence list, ordered by key. Any loop of any hub has the complete list.
package struct PresencePage: Sendable {
    /// The metas under one key, with what each member tracks.
    package struct Member: Sendable {
        package let key: String
        /// JSON objects, as sent to clients.
        package var metas: [[UInt8]]
    }

    /// The end of a page.
    package struct Place: Sendable, Equatable {
        /// The beginning of the key: a cursor has to fit into a URL.
        package let key: [UInt8]
        package let ref: Name

        private static let longestKey = 1024

        package init(key: [UInt8], ref: Name) {
            self.key = key
            self.ref = ref
        }

        init(_ meta: PresenceMeta) {
            self.init(key: Array(meta.key.utf8.prefix(Self.longestKey)), ref: meta.ref)
        }

        static func precedes(_ one: Place, _ other: Place) -> Bool {
            if one.key != other.key { return one.key.lexicographicallyPrecedes(other.key) }
            return one.ref < other.ref
        }
    }

    package var members: [Member] = []
    /// The end of this page if another follows.
    package var end: Place?
    /// The numbers of all presences and of the listed ones: a full list only counts newcomers.
    package var count = 0
    package var listed = 0

    /// The maximum bytes of a page's metas.
    package static let mostBytes = 1 << 20

    package init() {}

    mutating func appendMeta(_ meta: PresenceMeta, _ bytes: [UInt8]) {
        if let last = members.last, last.key.hasSameBytes(as: meta.key) {
            members[members.count - 1].metas.append(bytes)
        } else {
            members.append(Member(key: meta.key, metas: [bytes]))
        }
    }
}

extension Hub {
    /// - Parameters:
    ///   - after: the end of the previous page; nil for the first page.
    ///   - limit: the maximum number of metas.
    package func presencePage(of key: ChannelKey, after: PresencePage.Place?, limit: Int) -> PresencePage {
        var page = PresencePage()
        guard let list = channels[key]?.presence.list else { return page }
        (page.count, page.listed) = (list.count, list.listedCount)
        var first = FirstInOrder<(place: PresencePage.Place, meta: PresenceMeta)>(limit) {
            PresencePage.Place.precedes($0.place, $1.place)
        }
        list.forEach { meta in
            guard meta.isListed else { return }
            let place = PresencePage.Place(meta)
            if let after, !PresencePage.Place.precedes(after, place) { return }
            first.offer((place, meta))
        }
        var (bytes, isCut) = (0, first.isCut)
        var last: PresencePage.Place?
        for (place, meta) in first.elements {
            bytes += meta.listedBytes
            guard bytes <= PresencePage.mostBytes || last == nil else {
                isCut = true
                break
            }
            var encoded: [UInt8] = []
            meta.encode(into: &encoded)
            page.appendMeta(meta, encoded)
            last = place
        }
        if isCut { page.end = last }
        return page
    }

    /// Returns who is typing in a channel: the user if known, and what the client says of itself (a JSON object).
    package func typists(in key: ChannelKey, limit: Int) -> [(user: Name?, payload: [UInt8])] {
        channels[key]?.typing.typists(limit) ?? []
    }
}
