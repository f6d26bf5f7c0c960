import Wire

/// What a socket says in its conversations.
struct ChatFrames {
    private let plan: LoadPlan
    private let roster: Roster
    private let schedule: RowSchedule
    private let binding: (String) -> String

    init(_ plan: LoadPlan, _ roster: Roster, _ schedule: RowSchedule) throws {
        self.plan = plan
        self.roster = roster
        self.schedule = schedule
        guard let rows = plan.rows else { throw LoadFailure("There is no table to follow.") }
        let (schema, table) = (Self.quoted(rows.schema), Self.quoted(rows.table))
        binding = { uuid in
            let filter = Self.quoted("\(rows.filterColumn)=eq.\(uuid)")
            return #""postgres_changes":[{"event":"INSERT","schema":\#(schema),"table":\#(table),"filter":\#(filter)}]"#
        }
    }

    func topic(_ conversation: Int) -> String { plan.dialect.topic("conversation:" + schedule.uuid(of: conversation)) }

    func opening(of slot: Int) -> Opening {
        let number = roster.numbers[slot]
        let bearer = plan.rows.flatMap { number < $0.tokens.count ? $0.tokens[number] : nil }
        let member = bearer.map { #","access_token":"# + Self.quoted($0) } ?? ""
        let presence = plan.chat.tracksPresence ? #","presence":{"key":"\#(name(slot))","enabled":true}"# : ""
        var opening = Opening()
        forEachMembership(of: slot) { membership, conversation in
            // The reply, and the word that rows flow.
            opening.answers += 2
            opening.frames.append(
                plan.dialect.join(
                    topic(conversation), ref: ref(membership),
                    config: binding(schedule.uuid(of: conversation)) + presence,
                    bearer: member))
        }
        return opening
    }

    func forEachMembership(of slot: Int, _ body: (_ membership: Int, _ conversation: Int) throws -> Void) rethrows {
        for membership in slot * roster.perSocket..<(slot + 1) * roster.perSocket
        where roster.conversations[membership] >= 0 {
            try body(membership, roster.conversations[membership])
        }
    }

    func track(_ membership: Int, _ stamp: [UInt8]) -> [UInt8] {
        let payload =
            #"{"user":"\#(name(membership / roster.perSocket))","t":"\#(String(decoding: stamp, as: UTF8.self))"}"#
        return plan.dialect.presence(topic(roster.conversations[membership]), joinRef: ref(membership), track: payload)
    }

    func typing(_ membership: Int, _ types: Bool, _ stamp: [UInt8]) -> [UInt8] {
        broadcast(membership, "typing", #""typing":\#(types),"#, stamp)
    }

    func receipt(_ membership: Int, row: Int, _ stamp: [UInt8]) -> [UInt8] {
        broadcast(membership, "read", #""message":\#(row),"#, stamp)
    }

    private func broadcast(_ membership: Int, _ event: String, _ members: String, _ stamp: [UInt8]) -> [UInt8] {
        plan.dialect.broadcast(
            topic(roster.conversations[membership]), joinRef: ref(membership), event: event,
            members: members + #""user":"\#(name(membership / roster.perSocket))","#
        ).frame(stamp)
    }

    private func name(_ slot: Int) -> String { "u\(roster.numbers[slot])" }
    private func ref(_ membership: Int) -> String { String(membership % roster.perSocket + 1) }
    private static func quoted(_ text: String) -> String { String(decoding: JSONString.encode(text), as: UTF8.self) }
}
