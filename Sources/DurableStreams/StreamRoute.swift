import HTTP
package import Streams
import Wire

/// A path of the application at which a stream is read as plain events (`streams.routes`): `/reply=reply/{conversation}`.
/// It may be followed by `;event=type`, the member of a message that names its event, and `;turns` if the name is opened
/// again for each turn (`StreamReading.Turns`). With `;forward=URL`, a POST opens the next turn and is passed on to the
/// application's backend; `;cancel` cancels the turn if the client closes the answer.
package struct StreamRoute: Sendable, Equatable {
    package let path: String
    private let parts: [Part]
    /// The member of a JSON message that holds the name of its event.
    package let eventMember: String?
    package let areTurns: Bool
    /// The URL that receives POSTs; nil if POST is not served.
    package let backend: String?
    package let cancels: Bool

    private enum Part: Equatable {
        case text(String)
        /// A parameter of the query.
        case value(String)
    }

    /// Nil if the text is not a valid route.
    package init?(_ text: String) {
        let options = text.split(separator: ";", omittingEmptySubsequences: false)
        let sides = options[0].split(separator: "=", maxSplits: 1)
        guard sides.count == 2, sides[0].first == "/" else { return nil }
        path = String(sides[0])
        var (eventMember, backend): (String?, String?) = (nil, nil)
        var (areTurns, cancels) = (false, false)
        for option in options.dropFirst() {
            if option == "turns", !areTurns {
                areTurns = true
            } else if option.hasPrefix("event="), option.count > 6, eventMember == nil {
                eventMember = String(option.dropFirst(6))
            } else if option == "cancel", !cancels {
                cancels = true
            } else if option.hasPrefix("forward=http://") || option.hasPrefix("forward=https://"), backend == nil {
                backend = String(option.dropFirst("forward=".count))
            } else {
                return nil
            }
        }
        guard !cancels || backend != nil else { return nil }
        (self.eventMember, self.backend, self.cancels) = (eventMember, backend, cancels)
        self.areTurns = areTurns || backend != nil
        var parts: [Part] = []
        var rest = sides[1]
        while let open = rest.firstIndex(of: "{") {
            guard let close = rest[open...].firstIndex(of: "}") else { return nil }
            let name = rest[rest.index(after: open)..<close]
            guard !name.isEmpty else { return nil }
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            parts.append(.value(String(name)))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
        guard !rest.contains("}"), !parts.isEmpty else { return nil }
        self.parts = parts
    }

    /// The stream that a request names.
    ///
    /// - Throws: the answer to a request without a required value. A value with a slash could name a stream of another kind.
    func streamName(_ query: [String: String]) throws(StreamComplaint) -> StreamName {
        try streamName(named: "the query") { query[$0] }
    }

    /// The same for a POST, whose values may also be in its JSON.
    package func streamName(_ query: [String: String], _ body: [UInt8]) throws(StreamComplaint) -> StreamName {
        let json: JSON?
        do { json = try JSON(parsing: body) } catch { json = nil }
        return try streamName(named: "the query or the JSON") { name in
            query[name] ?? json?[name].flatMap { $0.string ?? $0.int.map(String.init) }
        }
    }

    private func streamName(named place: String, _ value: (String) -> String?) throws(StreamComplaint) -> StreamName {
        var text = ""
        for part in parts {
            switch part {
            case .text(let words): text += words
            case .value(let name):
                guard let value = value(name), !value.isEmpty, !value.contains("/") else {
                    throw .badRequest("\(name) is missing in \(place), or has a slash")
                }
                text += value
            }
        }
        guard let name = StreamName(text) else { throw .badRequest("This is not a name of a stream") }
        return name
    }
}
