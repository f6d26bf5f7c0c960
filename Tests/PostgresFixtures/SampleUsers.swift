import Postgres

extension Database {
    /// The sample chat's users, and three of them.
    func withUsers() throws -> Database {
        try prepared(
            """
            create table users (
                id uuid primary key, status text not null default 'offline'
                    check (status in ('online', 'away', 'offline')),
                last_seen timestamptz
            );
            insert into users (id) values ('\(Self.ann)'), ('\(Self.bob)'), ('\(Self.cat)');
            """)
    }

    static let ann = "00000000-0000-4000-8000-00000000000a"
    static let bob = "00000000-0000-4000-8000-00000000000b"
    static let cat = "00000000-0000-4000-8000-00000000000c"

    /// `online 1` and the like, in the order of the ids; the number is `last_seen` in seconds since 1970.
    func statuses() throws -> [String] {
        try session().queryRows(
            "select concat_ws(' ', status, extract(epoch from last_seen)::bigint) from users order by id"
        ).map { $0[0] ?? "" }
    }

    func onlineUsers() throws -> [String] {
        try session().queryRows("select node || ' ' || user_id from roost.online_user order by 1").map { $0[0] ?? "" }
    }
}
