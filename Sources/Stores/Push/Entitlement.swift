import ChangeFeed
import Hub
import Logging
import Matching
import Postgres
import Wire
import Workers

/// Decides which of the users named by the audience statement may see the row: exactly those to whom a SELECT with the claims of their
/// newest registration would show it. Undecidable rows are not shown.
///
/// The statement chooses which of a row's values an alert uses; only values named like a column that the user's role may not read are
/// removed.
struct Entitlement: ~Copyable {
    private struct Bearer {
        let role: Name
        let claims: Claims
    }

    private var engine: PolicyEngine
    private var access: [Name: RoleAccess] = [:]
    private var version = ""
    private var readAt: ContinuousClock.Instant?
    /// The same interval at which the feed checks for changes of policies and privileges.
    private static let lifetime = Duration.milliseconds(500)

    init(conninfo: String, logger: Logger) {
        engine = PolicyEngine(conninfo: conninfo, logger: logger)
    }

    /// - Returns: also the indices of changes that are undecided for some user, because a policy waits for a lock.
    /// - Throws: `PostgresError` if the database does not answer.
    mutating func members(
        among candidates: [AudienceQuery.Candidate], hearingOf changes: [RowChange],
        on connection: PostgresConnection, _ warnings: inout RateLimitedLog
    ) throws -> (members: [AudienceMember], locked: Set<Int>) {
        guard !candidates.isEmpty else { return ([], []) }
        let bearers = try Self.bearers(Set(candidates.map(\.user)), on: connection)
        try refresh(Set(bearers.values.map(\.role)), on: connection)
        var members: [AudienceMember] = []
        var inquiry = EntitlementInquiry()
        for candidate in candidates {
            let table = changes[candidate.index].table
            guard let bearer = bearers[candidate.user], let granted = access[bearer.role]?.table(table.oid) else {
                continue
            }
            if granted.isRestricted {
                inquiry.ask(
                    bearer.claims, bearer.role, ofUser: candidate.user, about: candidate.index,
                    changes[candidate.index], place: members.count)
            }
            members.append(AudienceMember(candidate, readable: granted.columns, of: table))
        }
        guard !inquiry.isEmpty else { return (members, []) }
        let answers = try engine.answers(to: inquiry.questions, version: version)
        for problem in answers.lazy.flatMap(\.problems) { warnings.logWarning(problem) }
        let (hidden, locked) = inquiry.hidden(by: answers)
        let waiting = Set(locked.map { members[$0].change })
        return (members.enumerated().filter { !hidden.contains($0.offset) }.map(\.element), waiting)
    }

    private mutating func refresh(_ roles: Set<Name>, on connection: PostgresConnection) throws {
        let now = ContinuousClock.now
        if readAt.map({ now - $0 > Self.lifetime }) ?? true {
            // Read first: a change while the rest is read makes the next version differ from this one.
            let current = try CatalogReader.version(from: connection)
            if current != version { access = [:] }
            version = current
            readAt = now
        }
        let unknown = roles.filter { access[$0] == nil }
        access.merge(try RoleAccess.readRoles(unknown, from: connection)) { _, new in new }
    }

    private static func bearers(
        _ users: Set<Name>, on connection: PostgresConnection
    ) throws -> [Name: Bearer] {
        var list = TextArray()
        for user in users { list.append(user.utf8) }
        let rows = try connection.query(AudienceSQL.findBearers, [list.literal])
        var bearers: [Name: Bearer] = [:]
        for row in 0..<rows.count {
            guard let user = rows.name(row, 0), let role = rows.name(row, 1), let claims = rows.bytes(row, 2) else {
                continue
            }
            bearers[user] = Bearer(
                role: role, claims: Claims(role: role, subject: user, expiresAt: .max, json: Array(claims)))
        }
        return bearers
    }
}

extension AudienceMember {
    /// - Parameter columns: the columns that the user's role may read; nil for all.
    fileprivate init(_ candidate: AudienceQuery.Candidate, readable columns: Set<Name>?, of table: Table) {
        change = candidate.index
        user = candidate.user
        isMuted = candidate.isMuted
        badge = candidate.badge
        hasDevice = candidate.hasDevice
        guard let columns else {
            variables = candidate.variables
            return
        }
        variables = JSONWriter.object { kept in
            JSON(trusted: candidate.variables[...]).forEachMember { member in
                let key = member.key
                if columns.contains(Name(key)) || table.column(Name(key)) == nil { kept.writeMember(member) }
            }
        }
    }
}

/// The questions to the policies about the rows of a batch: one for each table and role, with each user once.
struct EntitlementInquiry {
    private struct Key: Hashable {
        let table: UInt32
        let role: Name
        /// A table altered within the batch counts as two.
        let layout: ObjectIdentifier
    }

    private struct Asked {
        let key: Key
        let table: Table
        var rows: [[UInt8]] = []
        /// By the change's index.
        var numbers: [Int: Int] = [:]
        var subjects: [(claims: Claims, rows: [Int], places: [Int])] = []
        var subjectsByUser: [Name: Int] = [:]
    }

    private var asked: [Asked] = []
    private var byKey: [Key: Int] = [:]

    var isEmpty: Bool { asked.isEmpty }

    /// - Parameter place: the index that represents the candidate in `hidden`.
    mutating func ask(
        _ claims: Claims, _ role: Name, ofUser user: Name, about index: Int, _ change: RowChange, place: Int
    ) {
        let key = Key(table: change.table.oid, role: role, layout: ObjectIdentifier(change.table))
        let question = byKey[key] ?? asked.count
        if question == asked.count {
            asked.append(Asked(key: key, table: change.table))
            byKey[key] = question
        }
        let number = asked[question].numbers[index] ?? asked[question].rows.count
        if number == asked[question].rows.count {
            asked[question].rows.append(change.judgedRecord ?? [])
            asked[question].numbers[index] = number
        }
        let subject = asked[question].subjectsByUser[user] ?? asked[question].subjects.count
        if subject == asked[question].subjects.count {
            asked[question].subjects.append((claims, [], []))
            asked[question].subjectsByUser[user] = subject
        }
        asked[question].subjects[subject].rows.append(number)
        asked[question].subjects[subject].places.append(place)
    }

    var questions: [PolicyQuestion] {
        asked.map { asked in
            PolicyQuestion(
                table: asked.table, command: .select, role: asked.key.role, rows: asked.rows,
                subjects: asked.subjects.map { PolicyQuestion.Subject(claims: $0.claims, rows: $0.rows.sorted()) })
        }
    }

    /// Returns the places of rows that are hidden or undecided, and those of them that wait for a lock.
    func hidden(by answers: [PolicyAnswer]) -> (hidden: Set<Int>, locked: Set<Int>) {
        var hidden = Set<Int>()
        var locked = Set<Int>()
        for (question, asked) in asked.enumerated() {
            for (number, subject) in asked.subjects.enumerated() {
                let visible = question < answers.count ? Set(answers[question].visible[number]) : []
                for (row, place) in zip(subject.rows, subject.places) where !visible.contains(row) {
                    hidden.insert(place)
                    if question < answers.count, answers[question].locked.contains(number) { locked.insert(place) }
                }
            }
        }
        return (hidden, locked)
    }
}
