import ChangeFeed
import Hub
import Logging
import Matching
import Postgres
import Testing
import Wire

@testable import PostgresFixtures

/// A database with policies, the engine that asks them, and what real statements as the same users show.
final class PolicyStage {
    let database: Database
    let session: DatabaseSession
    private var engine: PolicyEngine
    private var version = 0

    init(_ script: String, user: String = "postgres", limits: PolicyLimits = PolicyLimits()) throws {
        database = try PostgresCluster.shared.migratedDatabase()
        session = try database.session()
        try session.runScript("set synchronous_commit = off")
        try session.runScript(Self.roles)
        try session.runScript(Self.claims)
        try session.runScript(script)
        let conninfo = database.conninfo.replacing("user=postgres", with: "user=\(user)")
        engine = PolicyEngine(conninfo: conninfo, logger: .silent, limits: limits)
    }

    /// The catalog has changed.
    func changed(_ script: String) throws {
        try session.runScript(script)
        version += 1
    }

    func table(_ name: String, schema: String = "public") throws -> Table {
        let rows = try session.queryRows(
            """
            select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where c.relname = $1 and n.nspname = $2
            """, [name, schema])
        return Table(oid: UInt32(rows[0][0] ?? "") ?? 0, schema: Name(schema), name: Name(name), columns: [])
    }

    /// All rows as the outbox would have them, ordered by their text.
    func records(of table: Table) throws -> [[UInt8]] {
        try session.queryRows("select row_to_json(t.*) from \(SQLText.name(of: table)) t order by t::text").map {
            Array(($0[0] ?? "").utf8)
        }
    }

    func ask(_ questions: [PolicyQuestion]) throws -> [PolicyAnswer] {
        try engine.answers(to: questions, version: "\(version)")
    }

    func ask(
        _ table: Table, _ command: PolicyQuestion.Command = .select, role: String = "policy_user", records: [[UInt8]],
        users: [PolicyUser], wantsTablesRead: Bool = false
    ) throws -> PolicyAnswer {
        let subjects = users.map { user in
            PolicyQuestion.Subject(claims: user.claims(role), topic: user.topic, rows: Array(records.indices))
        }
        return try ask([
            PolicyQuestion(
                table: table, command: command, role: Name(role), rows: records.map(JudgedRecord.knowingNulls),
                subjects: subjects,
                wantsTablesRead: wantsTablesRead)
        ])[0]
    }

    /// What is visible of all the table's rows.
    func visible(_ name: String, role: String = "policy_user", users: [PolicyUser]) throws -> [[Int]] {
        let table = try table(name)
        return try ask(table, role: role, records: records(of: table), users: users).visible
    }

    /// What a SELECT of the user shows of the records, as indices; nil where it fails.
    func selected(_ table: Table, role: String, user: PolicyUser, among records: [[UInt8]]) throws -> [Int]? {
        try session.runScript("begin")
        defer { rollBack() }
        try assume(role, user)
        do {
            let rows = try session.queryRows("select row_to_json(t.*) from \(SQLText.name(of: table)) t")
            let shown = Set(rows.compactMap { $0[0].map { Array($0.utf8) } })
            return records.indices.filter { shown.contains(records[$0]) }
        } catch {
            return nil
        }
    }

    func rollBack() {
        do { try session.runScript("rollback") } catch { Issue.record(error) }
    }

    func assume(_ role: String, _ user: PolicyUser) throws {
        let claims = user.claims(role)
        _ = try session.queryRows(
            """
            select set_config('role', $1, true), set_config('request.jwt.claims', $2, true),
                set_config('request.jwt.claim.sub', $3, true), set_config('request.jwt.claim.role', $1, true),
                set_config('request.headers', '{}', true), set_config('realtime.topic', $4, true)
            """, [role, String(decoding: claims.json, as: UTF8.self), user.sub, user.topic ?? ""])
    }

    /// Before Postgres 14 the hub can ask only policies whose schemas the role may use, and says so
    /// (`PolicyDenial`); since then a policy's names are looked up once, when it is created.
    static var looksNamesUpAnew: Bool {
        get throws { try PostgresCluster.shared.database().serverVersion() < 140_000 }
    }

    /// What a policy takes that names a schema which its role may not use: nothing but before Postgres 14.
    static func grantOfSchema(_ name: String) throws -> String {
        try looksNamesUpAnew ? "; grant usage on schema \(name) to public" : ""
    }

    private static let roles = """
        do $$
        declare r text;
        begin
            foreach r in array
                '{policy_user,policy_group,policy_other,policy_owner,policy_beyond,policy_root}'::text[]
            loop
                if not exists (select from pg_roles where rolname = r) then
                    execute format('create role %I', r);
                end if;
            end loop;
            if not exists (select from pg_roles where rolname = 'policy_hub') then
                create role policy_hub login;
            end if;
            grant policy_group to policy_user;
            alter role policy_beyond bypassrls;
            alter role policy_root superuser;
            grant policy_owner to policy_root;
        end $$
        """

    private static let claims = """
        grant usage on schema auth, roost to public;
        create or replace function auth.uid() returns uuid language sql stable as $$
            select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
                nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid
        $$;
        create function sub() returns text language sql stable as $$
            select current_setting('request.jwt.claim.sub', true)
        $$
        """
}

/// A user by the `sub` of the token.
struct PolicyUser {
    let sub: String
    var topic: String?
    var extra = ""

    func claims(_ role: String) -> Claims {
        let json = #"{"sub":"\#(sub)","role":"\#(role)"\#(extra)}"#
        return Claims(role: Name(role), subject: Name(sub), expiresAt: .max, json: Array(json.utf8))
    }
}

extension [PolicyUser] {
    static func named(_ names: String...) -> [PolicyUser] { names.map { PolicyUser(sub: $0) } }
}
