import Hub
import Wire

/// Who was granted what in private channels, worked out from the questions and their answers alone.
struct Privacy {
    struct Place: Hashable {
        let side: Int
        let slot: Slot
        let topic: String
    }
    /// Who speaks; every question about reading is caused by the frame of its member.
    var actor: (side: Int, slot: Slot, isJoin: Bool, hasAsked: Bool)?
    private(set) var open: [AuthorizationID: Place?] = [:]
    private(set) var answered: [AuthorizationID] = []
    private var latest: [Place: AuthorizationID] = [:]
    private var granted: [Place: ChannelExtensions] = [:]
    private var joined: Set<Place> = []

    mutating func began(_ side: Int, _ slot: Slot, isJoin: Bool) { actor = (side, slot, isJoin, false) }

    mutating func asked(_ side: Int, _ id: AuthorizationID, _ question: AuthorizationQuestion) {
        guard case .read = question.right, let actor else {
            open.updateValue(nil, forKey: id)
            return
        }
        let place = Place(side: side, slot: actor.slot, topic: "realtime:" + question.topic)
        if actor.isJoin { end { $0 == place } }
        self.actor?.hasAsked = true
        latest[place] = id
        open[id] = place
    }

    mutating func answer(_ id: AuthorizationID, _ outcome: AuthorizationOutcome) {
        answered.append(id)
        guard let place = open.removeValue(forKey: id) ?? nil, latest[place] == id else { return }
        if case .decided(let read, _) = outcome { granted[place] = read } else { granted[place] = nil }
    }

    /// What a client is told of its channel.
    mutating func told(_ place: Place, _ event: String, _ payload: JSON) {
        if event == "phx_close" || event == "phx_error" { return end { $0 == place } }
        guard event == "phx_reply" else { return }
        if let actor, actor.isJoin, actor.slot == place.slot, !actor.hasAsked {
            // A join that nobody was asked about is one of the public channel, or refused.
            end { $0 == place }
        }
        if payload["response"]?["postgres_changes"] != nil { joined.insert(place) }
    }

    mutating func end(_ isOver: (Place) -> Bool) {
        for place in latest.keys.filter(isOver) { latest[place] = nil }
        for place in granted.keys.filter(isOver) { granted[place] = nil }
        joined = joined.filter { !isOver($0) }
    }

    func mayHear(_ place: Place, _ part: ChannelExtensions) -> Bool {
        joined.contains(place) && granted[place]?.contains(part) == true
    }
}
