import Hub
import Testing
import Wire

/// A client as the model sees it: what it has read, and what is on its way to it.
struct HistoryClient {
    struct Place: Hashable {
        let side: Int
        let slot: Slot
    }

    let number: Int
    let version: ProtocolVersion
    /// It comes back with the id of the last message that it has; others say no more than that they want a history.
    let knowsIDs: Bool
    let echoes: Bool
    /// Its refs begin with 1 on each socket.
    let beginsAnew: Bool
    var place: Place?
    /// Frames that the hub sent and the client has not read: lost with the socket.
    var onTheWay: [Frame] = []
    var joins = 0
    var isJoined = false
    /// The hub let it in once: it is owed all that was sent from then on.
    var owedFrom: Int?
    var lastID: String?
    var read: [Int: Int] = [:]
    private(set) var replayed = 0

    init(number: Int, version: ProtocolVersion, knowsIDs: Bool, echoes: Bool, beginsAnew: Bool) {
        self.number = number
        self.version = version
        self.knowsIDs = knowsIDs
        self.echoes = echoes
        self.beginsAnew = beginsAnew
    }

    /// The `phx_join`, and its ref.
    mutating func join() -> [UInt8] {
        joins += 1
        isJoined = false
        let after = lastID.map { #"{"after":"\#($0)"}"# } ?? "{}"
        let history = knowsIDs ? after : "true"
        return frame("phx_join", #"{"config":{"broadcast":{"self":\#(echoes),"history":\#(history)}}}"#)
    }

    /// The ref of its last join.
    var joinRef: String { String(beginsAnew ? 1 : joins) }

    func frame(_ event: String, _ payload: String) -> [UInt8] {
        let ref = joinRef
        let text =
            version == .v2
            ? #"["\#(ref)","\#(ref)","realtime:a","\#(event)",\#(payload)]"#
            : #"{"topic":"realtime:a","event":"\#(event)","payload":\#(payload),"ref":"\#(ref)","join_ref":"\#(ref)"}"#
        return Array(text.utf8)
    }

    /// Reads the next frame. Returns the ping's payload if it is one.
    mutating func readOne() throws -> [UInt8]? {
        let frame = onTheWay.removeFirst()
        if frame.bytes.first == 0x89 { return Array(frame.bytes.dropFirst(2)) }
        let shown = try ShownFrame(frame.bytes)
        if !shown.isText {
            let parts = try shown.kind4()
            try take(try JSON(parsing: Array(parts.payload)), meta: try JSON(parsing: Array(parts.metadata.utf8)))
            return nil
        }
        let json = try JSON(parsing: shown.payload)
        let parts = version == .v2 ? Array(json.elements.suffix(2)) : ["event", "payload"].compactMap { json[$0] }
        switch parts[0].string {
        case "broadcast": try take(try #require(parts[1]["payload"]), meta: try #require(parts[1]["meta"]))
        case "phx_reply":
            guard let history = parts[1]["response"]?["history"] else { return nil }
            #expect(history["complete"]?.bool != false, "all is kept: \(history)")
            if knowsIDs, lastID != nil { #expect(history["complete"]?.bool == true, "it came back: \(history)") }
            lastID = history["id"]?.string
            isJoined = true
        default: Issue.record("unexpected: \(json)")
        }
        return nil
    }

    private mutating func take(_ payload: JSON, meta: JSON) throws {
        #expect(isJoined, "nothing comes before the reply")
        let (id, n) = (try #require(meta["history"]?.string), try #require(payload["n"]?.int))
        let last = try #require(lastID)
        #expect(Self.position(id) > Self.position(last), "\(id) behind \(last)")
        if knowsIDs { #expect(read[n] == nil, "\(n) twice to one that names ids") }
        if meta["replayed"]?.bool == true {
            replayed += 1
        } else if !echoes {
            #expect(payload["by"]?.int != number, "its own, which it did not want")
        }
        read[n, default: 0] += 1
        lastID = id
    }

    private static func position(_ id: String) -> Int {
        Int(id.split(separator: ".").last ?? "", radix: 36) ?? -1
    }
}
