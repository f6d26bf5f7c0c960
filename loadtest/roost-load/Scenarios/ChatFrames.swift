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
        let bearer = plan.rows.flatMap { number < $0.bearers.count ? $0.bearers[number] : nil }
        let member = bearer.map { #","access_token":"# + Self.quoted($0) } ?? ""
        let presence = plan.chat.tracksPresence ? #","presence":{"key":"\#(name(slot))","enabled":true}"# : ""
        var opening = Opening()
        forEachSeat(of: slot) { seat, conversation in
            // The reply, and the word that rows flow.
            opening.answers += 2
            opening.frames.append(
                plan.dialect.join(
                    topic(conversation), ref: ref(seat), config: binding(schedule.uuid(of: conversation)) + presence,
                    bearer: member))
        }
        return opening
    }

    func forEachSeat(of slot: Int, _ body: (_ seat: Int, _ conversation: Int) throws -> Void) rethrows {
        for seat in slot * roster.perSocket..<(slot + 1) * roster.perSocket where roster.conversations[seat] >= 0 {
            try body(seat, roster.conversations[seat])
        }
    }

    func track(_ seat: Int, _ stamp: [UInt8]) -> [UInt8] {
        let payload = #"{"user":"\#(name(seat / roster.perSocket))","t":"\#(String(decoding: stamp, as: UTF8.self))"}"#
        return plan.dialect.presence(topic(roster.conversations[seat]), joinRef: ref(seat), track: payload)
    }

    func typing(_ seat: Int, _ types: Bool, _ stamp: [UInt8]) -> [UInt8] {
        broadcast(seat, "typing", #""typing":\#(types),"#, stamp)
    }

    func receipt(_ seat: Int, row: Int, _ stamp: [UInt8]) -> [UInt8] {
        broadcast(seat, "read", #""message":\#(row),"#, stamp)
    }

    private func broadcast(_ seat: Int, _ event: String, _ members: String, _ stamp: [UInt8]) -> [UInt8] {
        plan.dialect.broadcast(
            topic(roster.conversations[seat]), joinRef: ref(seat), event: event,
            members: members + #""user":"\#(name(seat / roster.perSocket))","#
        ).frame(stamp)
    }

    private func name(_ slot: Int) -> String { "u\(roster.numbers[slot])" }
    private func ref(_ seat: Int) -> String { String(seat % roster.perSocket + 1) }
    private static func quoted(_ text: String) -> String { String(decoding: JSONString.encode(text), as: UTF8.self) }
}
