import ChangeFeed
import Hub
import Matching

@testable import PostgresFixtures

extension PolicyStage {
    /// A table `notes` of three rows: two of ann, one of bob, the last with a size that is no number.
    static func notes(
        _ policy: String, user: String = "postgres", limits: PolicyLimits = PolicyLimits()
    ) throws -> (PolicyStage, Table, [[UInt8]]) {
        let tables = """
            create table notes (id int primary key, owner text, size text);
            insert into notes values (1, 'ann', '1'), (2, 'bob', '2'), (3, 'ann', 'three');
            grant select, insert on notes to policy_user;
            alter table notes enable row level security;
            """
        let stage = try PolicyStage(tables + policy, user: user, limits: limits)
        let table = try stage.table("notes")
        return try (stage, table, stage.records(of: table))
    }
}
