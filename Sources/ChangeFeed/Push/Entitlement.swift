import Hub
import Logging
import Matching
import Postgres
import Wire

/// Decides who of those that the audience statement names may see the row: exactly those to whom a SELECT with the claims
/// of their newest registration would show it. What cannot be decided is not shown.
///
/// Of which of a row's values an alert makes use is the statement's choice; only what it names like a column that the
/// user's role may not read is taken out.
struct Entitlement: ~Copyable {
    private struct Bearer {
        let role: String
        let claims: Claims
    }

    private var engine: PolicyEngine
    private var access: [String: RoleAccess] = [:]
    private var version = ""
    private var readAt: ContinuousClock.Instant?
    /// As often as the feed looks whether policies and privileges have changed.
    private static let lifetime = Duration.milliseconds(500)

    init(conninfo: String, logger: Logger) {
        engine = PolicyEngine(conninfo: conninfo, logger: logger)
    }

    /// - Throws: `PostgresError` where the database, or what the policies read, does not answer.
    mutating func members(
        among candidates: [AudienceAsker.Candidate], hearingOf changes: [RowChange],
        on connection: PostgresConnection, _ complaints: inout RateLimitedLog
    ) throws -> [AudienceMember] {
        guard !candidates.isEmpty else { return [] }
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
        guard !inquiry.isEmpty else { return members }
        let answers = try engine.answers(to: inquiry.questions, version: version)
        for problem in answers.lazy.flatMap(\.problems) { complaints.note(problem) }
        let hidden = inquiry.hidden(by: answers)
        return members.enumerated().filter { !hidden.contains($0.offset) }.map(\.element)
    }

    private mutating func refresh(_ roles: Set<String>, on connection: PostgresConnection) throws {
        let now = ContinuousClock.now
        if readAt.map({ now - $0 > Self.lifetime }) ?? true {
            // First: what changes while the rest is read makes the next version differ from this one.
            let current = try connection.query(SQL.catalogVersion).text(0, 0) ?? ""
            if current != version { access = [:] }
            version = current
            readAt = now
        }
        let unknown = roles.filter { access[$0] == nil }
        access.merge(try RoleAccess.read(unknown, from: connection)) { _, new in new }
    }

    private static func bearers(
        _ users: Set<String>, on connection: PostgresConnection
    ) throws -> [String: Bearer] {
        var list = TextArray()
        for user in users { list.append(user.utf8) }
        let rows = try connection.query(SQL.bearers, [list.literal])
        var bearers: [String: Bearer] = [:]
        for row in 0..<rows.count {
            guard let user = rows.text(row, 0), let role = rows.text(row, 1), let claims = rows.bytes(row, 2) else {
                continue
            }
            bearers[user] = Bearer(
                role: role, claims: Claims(role: role, subject: user, expiresAt: .max, json: Array(claims)))
        }
        return bearers
    }
}

extension AudienceMember {
    /// - Parameter columns: of the table that the user's role may read; nil for all.
    fileprivate init(_ candidate: AudienceAsker.Candidate, readable columns: Set<String>?, of table: Table) {
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
                if columns.contains(key) || table.column(key) == nil { kept.member(member) }
            }
        }
    }
}
