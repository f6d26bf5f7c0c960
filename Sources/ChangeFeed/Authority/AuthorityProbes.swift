import Hub
import Matching
import Postgres
import Wire

/// `realtime.messages` as described by the catalog (`MessagesTable in Authority.sql`).
struct MessagesTable {
    let table: Table
    let version: String
    private let columns: [String]
    /// The time and an id, as JSON.
    private let now: [UInt8]
    private let id: [UInt8]

    /// - Returns: nil if there is no such table.
    init?(_ result: QueryResult) {
        guard result.count == 1, let oid = result.text(0, 0).flatMap({ UInt32($0) }), let columns = result.bytes(0, 1),
            let version = result.text(0, 2), let now = result.bytes(0, 3), let id = result.bytes(0, 4)
        else { return nil }
        table = Table(oid: oid, schema: "realtime", name: "messages", columns: [], hasRowSecurity: true)
        self.columns = JSON(trusted: Array(columns)[...]).elements.compactMap(\.string)
        self.version = version
        self.now = Array(now)
        self.id = Array(id)
    }

    /// True if rows may expire (supabase/realtime 2.174).
    var hasExpiry: Bool { columns.contains("expires_at") }

    /// The row that the policies are asked about: it has what the original's probe has, so that a policy decides alike in
    /// both (its lib/realtime/tenants/authorization.ex). That is the topic, the extension, an id and the times; the other
    /// columns have their defaults, including `private`, which is false even for a private channel.
    func probeRow(topic: String, extension name: String) -> [UInt8] {
        JSONWriter.object { row in
            for column in columns {
                row.writeKey(column)
                switch column {
                case "topic": row.writeValue(topic)
                case "extension": row.writeValue(name)
                case "id": row.writeValue(json: id)
                case "inserted_at", "updated_at": row.writeValue(json: now)
                case "private", "skip_broadcast": row.writeValue(false)
                default: row.writeNull()
                }
            }
            row.writeMember(JudgedRecord.marker, json: Array("{}".utf8))
        }
    }
}

/// A batch of questions in the form of the policy engine: one for each role and command, with a row for each topic and
/// extension in question.
struct ProbeBatch {
    private struct Kind: Hashable {
        let role: Name
        let command: PolicyQuestion.Command
    }

    private struct Probe: Hashable {
        let topic: Name
        let right: ChannelExtensions
    }

    private struct Draft {
        var rows: [[UInt8]] = []
        /// The right that each row stands for.
        var rights: [ChannelExtensions] = []
        var numbers: [Probe: Int] = [:]
        var subjects: [PolicyQuestion.Subject] = []
        /// The place in the batch of each subject's question.
        var places: [Int] = []
    }

    private static let extensions: [(name: String, right: ChannelExtensions)] = [
        ("broadcast", .broadcast), ("presence", .presence), ("cancel", .cancel), ("persistence", .persistence),
    ]

    private var kinds: [Kind] = []
    private var drafts: [Kind: Draft] = [:]
    private let messages: MessagesTable

    init(_ batch: [PendingQuestion], of messages: MessagesTable) {
        self.messages = messages
        for (place, pending) in batch.enumerated() { addQuestion(pending.question, at: place) }
    }

    private mutating func addQuestion(_ question: AuthorizationQuestion, at place: Int) {
        // Postgres has no text with a NUL, and libpq would send only the part before it: another topic, another role.
        guard !question.topic.utf8.contains(0), !question.claims.role.utf8.contains(0) else { return }
        let (command, wanted): (PolicyQuestion.Command, ChannelExtensions) =
            switch question.right {
            case .read: (.select, .all)
            case .write(let extensions): (.insert, extensions)
            }
        let kind = Kind(role: question.claims.role, command: command)
        if drafts[kind] == nil { kinds.append(kind) }
        var draft = drafts[kind] ?? Draft()
        drafts[kind] = nil  // Avoids sharing the arrays, which appending would then copy.
        let rows = Self.extensions.filter { wanted.contains($0.right) }.map { name, right in
            let probe = Probe(topic: Name(question.topic), right: right)
            if let number = draft.numbers[probe] { return number }
            draft.numbers[probe] = draft.rows.count
            draft.rows.append(messages.probeRow(topic: question.topic, extension: name))
            draft.rights.append(right)
            return draft.rows.count - 1
        }
        draft.subjects.append(PolicyQuestion.Subject(claims: question.claims, topic: question.topic, rows: rows))
        draft.places.append(place)
        drafts[kind] = draft
    }

    var questions: [PolicyQuestion] {
        kinds.compactMap { kind in
            drafts[kind].map {
                PolicyQuestion(
                    table: messages.table, command: kind.command, role: kind.role, rows: $0.rows, subjects: $0.subjects)
            }
        }
    }

    /// The questions, by their places in the batch, that policies did not answer because they wait for a lock.
    func lockedPlaces(_ answers: [PolicyAnswer]) -> Set<Int> {
        var locked: Set<Int> = []
        for (kind, answer) in zip(kinds, answers) where !answer.locked.isEmpty {
            guard let draft = drafts[kind] else { continue }
            locked.formUnion(answer.locked.map { draft.places[$0] })
        }
        return locked
    }

    /// The faults that policies met, by the places of the questions that got no answer for some row because of them.
    func findFaults(_ answers: [PolicyAnswer]) -> [Int: PolicyFault] {
        var faults: [Int: PolicyFault] = [:]
        for (kind, answer) in zip(kinds, answers) {
            guard let draft = drafts[kind] else { continue }
            for subject in answer.failed.subtracting(answer.locked).subtracting(answer.ending) {
                // Subjects that took too long have no failure from Postgres.
                let isError = answer.failures[subject].map { $0.state != SQLState.queryCanceled } ?? false
                faults[draft.places[subject]] = isError ? .error : .canceled
            }
        }
        return faults
    }

    /// The rights that the answers allow, for each question of the batch.
    func allowedRights(_ answers: [PolicyAnswer], count: Int) -> [ChannelExtensions] {
        var rights = [ChannelExtensions](repeating: [], count: count)
        for (kind, answer) in zip(kinds, answers) {
            guard let draft = drafts[kind], !answer.isDenied else { continue }
            for (place, visible) in zip(draft.places, answer.visible) {
                for row in visible { rights[place].insert(draft.rights[row]) }
            }
        }
        return rights
    }
}
