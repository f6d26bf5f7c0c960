import Administration
import ChangeFeed
import Foundation
import Hub
import Postgres
import Synchronization
import Testing
import Wire

@testable import PostgresFixtures

/// A migrated database with policies on `realtime.messages`, an authority on it, and the original's way to ask them.
final class AuthorityStage {
    let database: Database
    let session: DatabaseSession
    let authority: PolicyAuthority

    init(_ script: String = "", on cluster: PostgresCluster = .shared, user: String = "postgres") throws {
        database = try cluster.database()
        try database.createClientRoles()
        session = try database.session()
        try session.runScript("create schema auth; grant usage on schema auth to public")
        try Migrator.migrate(conninfo: database.conninfo)
        if !script.isEmpty { try session.runScript(script) }
        authority = PolicyAuthority(conninfo: database.role(user).conninfo, logger: .silent)
        authority.start()
    }

    deinit { authority.stop() }

    static func claims(_ role: String, _ sub: String? = nil) -> Claims {
        let json = sub.map { #"{"role":"\#(role)","sub":"\#($0)","level":3}"# } ?? #"{"role":"\#(role)"}"#
        return Claims(role: Name(role), subject: sub.map { Name($0) }, expiresAt: .max, json: Array(json.utf8))
    }

    /// What the authority answers, in the order of the questions.
    func ask(_ questions: [AuthorizationQuestion], within limit: Duration = .seconds(10)) throws
        -> [AuthorizationOutcome]
    {
        let answers = Mutex<[Int: [AuthorizationOutcome]]>([:])
        let holder = Holder(answers)
        for (place, question) in questions.enumerated() {
            authority.decideQuestion(question) { outcome in
                holder.answers.withLock { $0[place, default: []].append(outcome) }
            }
        }
        try eventually("\(questions.count) answers", within: limit) {
            holder.answers.withLock { $0.count } == questions.count
        }
        return try holder.answers.withLock { answers in
            try questions.indices.map { place in
                let given = answers[place] ?? []
                #expect(given.count == 1, "a question is answered once")
                return try #require(given.first)
            }
        }
    }

    private final class Holder: Sendable {
        let answers: Mutex<[Int: [AuthorizationOutcome]]>
        init(_ answers: consuming Mutex<[Int: [AuthorizationOutcome]]>) { self.answers = answers }
    }

    /// In words: `broadcast`, `presence`, `all`, `none`, `unavailable`, `replay failed`, `failed: error`.
    func rights(
        _ role: String, _ sub: String? = nil, topic: String = "room",
        to right: AuthorizationQuestion.Right = .read(replay: nil)
    ) throws -> String {
        let question = AuthorizationQuestion(claims: Self.claims(role, sub), topic: topic, right: right)
        return try ask([question])[0].words
    }

    func replay(_ role: String, topic: String = "room", since: Int, limit: Int = 25) throws -> [ReplayedMessage] {
        let right = AuthorizationQuestion.Right.read(replay: ReplayRequest(since: since, limit: limit))
        let question = AuthorizationQuestion(claims: Self.claims(role), topic: topic, right: right)
        guard case .decided(_, let messages) = try ask([question])[0] else { throw TooLate(description: "no replay") }
        return messages
    }

    /// What the original would find: rows inserted by the service and looked for as the user, or inserted as the user.
    func original(_ claims: Claims, topic: String, _ right: AuthorizationQuestion.Right) throws -> String {
        var found: ChannelExtensions = []
        let wanted: ChannelExtensions = if case .write(let wanted) = right { wanted } else { .all }
        for (name, one) in [("broadcast", ChannelExtensions.broadcast), ("presence", .presence)]
        where wanted.contains(one) {
            try session.runScript("begin")
            defer { do { try session.runScript("rollback") } catch { Issue.record(error) } }
            let insert =
                "insert into realtime.messages (topic, extension, updated_at, inserted_at, id) "
                + "values ($1, $2, now() at time zone 'UTC', now() at time zone 'UTC', $3)"
            let id = UUID().uuidString.lowercased()
            let isRead = if case .read = right { true } else { false }
            if isRead { _ = try session.queryRows(insert, [topic, name, id]) }
            do {
                _ = try session.queryRows(
                    """
                    select set_config('role', $1, true), set_config('realtime.topic', $2, true),
                        set_config('request.jwt.claims', $3, true), set_config('request.jwt.claim.sub', $4, true),
                        set_config('request.jwt.claim.role', $1, true), set_config('request.headers', '{}', true)
                    """,
                    [claims.role.text, topic, String(decoding: claims.json, as: UTF8.self), claims.subject?.text ?? ""])
                if isRead {
                    if try !session.queryRows("select id from realtime.messages where id = $1", [id]).isEmpty {
                        found.insert(one)
                    }
                } else {
                    _ = try session.queryRows(insert, [topic, name, id])
                    found.insert(one)
                }
            } catch {
                // No right, or a policy that failed: denied either way.
            }
        }
        return AuthorizationOutcome.decided(found).words
    }
}

extension AuthorizationOutcome {
    var words: String {
        switch self {
        case .unavailable: "unavailable"
        case .replayFailed: "replay failed"
        case .failed(let fault): "failed: \(fault)"
        case .decided(let rights, _):
            switch rights {
            case []: "none"
            case .broadcast: "broadcast"
            case .presence: "presence"
            default: "all"
            }
        }
    }
}

extension ReplayedMessage {
    var line: String {
        switch body {
        case .json(let text): "\(event) \(String(decoding: text, as: UTF8.self))"
        case .binary(let bytes): "\(event) \(bytes)"
        }
    }
}
