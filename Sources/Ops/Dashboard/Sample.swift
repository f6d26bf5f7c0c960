import Documents

/// What the hub did in one second, and what it held at the end of it.
struct Sample: Sendable {
    /// One event loop's part.
    struct Loop: Sendable {
        var connections = 0
        /// Share of the time in which it worked, 0 to 1.
        var busy = 0.0
        /// Milliseconds that 99 of 100 turns took at most; nil where there was none.
        var turn: Double?
    }

    /// In seconds since 1970.
    var at = 0.0
    var connections = 0
    var pendingBytes = 0
    /// In a second, these all.
    var framesIn = 0.0
    var framesOut = 0.0
    var bytesIn = 0.0
    var bytesOut = 0.0
    var accepted = 0.0
    var closed = 0.0
    var joins = 0.0
    /// Milliseconds from a commit to the sockets; nil where there was no row.
    var lagMedian: Double?
    var lagP99: Double?
    /// Turns of more than 100 ms.
    var stalls = 0
    /// Cores that the process used.
    var cores = 0.0
    var loops: [Loop] = []

    var json: JSONDocument {
        [
            "at": .rounded(at), "connections": .integer(connections), "pending": .integer(pendingBytes),
            "framesIn": .rounded(framesIn), "framesOut": .rounded(framesOut), "bytesIn": .rounded(bytesIn),
            "bytesOut": .rounded(bytesOut), "accepted": .rounded(accepted), "closed": .rounded(closed),
            "joins": .rounded(joins), "lagMedian": .rounded(lagMedian), "lagP99": .rounded(lagP99),
            "stalls": .integer(stalls), "cores": .rounded(cores),
            "loops": .array(
                loops.map {
                    ["connections": .integer($0.connections), "busy": .rounded($0.busy), "turn": .rounded($0.turn)]
                }),
        ]
    }
}
