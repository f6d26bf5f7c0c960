import ChangeFeed
import Foundation

extension Database {
    /// The roles of clients' tokens, as Supabase and the demo have them; roles belong to the whole cluster.
    func createClientRoles() throws {
        try run(
            """
            do $$
            declare
                wanted text;
            begin
                foreach wanted in array '{anon,authenticated,service_role}'::text[] loop
                    if not exists (select from pg_roles where rolname = wanted) then
                        execute format('create role %I nologin noinherit', wanted);
                    end if;
                end loop;
                alter role service_role bypassrls;
            end
            $$;
            """)
    }

    /// What Supabase's own server leaves in a database: partitioned messages of another owner, its send().
    func createSupabaseRealtime(binary: Bool) throws {
        try createClientRoles()
        try run(
            """
            do $$ begin
                create role supabase_realtime_admin nologin; exception when duplicate_object then null;
            end $$;
            create schema realtime;
            create schema auth;
            create function auth.uid() returns uuid language sql stable as $$ select null::uuid $$;
            grant usage on schema realtime to anon, authenticated, service_role;
            create table realtime.messages (
                topic text not null, extension text not null, payload jsonb, event text, private boolean default false,
                updated_at timestamp not null default now(), inserted_at timestamp not null default now(),
                id uuid not null default gen_random_uuid()\(binary ? ", binary_payload bytea" : ""),
                primary key (id, inserted_at)
            ) partition by range (inserted_at);
            create table realtime.messages_all partition of realtime.messages
                for values from ('2000-01-01') to ('2100-01-01');
            alter table realtime.messages enable row level security;
            create function realtime.send(payload jsonb, event text, topic text, private boolean default true)
            returns void language sql as $$
                insert into realtime.messages (payload, event, topic, private, extension)
                values (payload || '{"theirs": true}', event, topic, private, 'broadcast')
            $$;
            alter table realtime.messages owner to supabase_realtime_admin;
            grant all on schema realtime to supabase_realtime_admin;
            """)
    }

    /// The outbox: operation, table, and of the record the columns that are named.
    func outbox(_ columns: String...) throws -> [String] {
        let picked = columns.map { ", coalesce(record ->> '\($0)', 'null')" }.joined()
        return try session().queryRows(
            "select concat_ws(' ', op, relid::regclass, case when reduced then 'reduced' end\(picked)) "
                + "from roost.change order by id"
        ).map { $0[0] ?? "" }
    }

    func value(_ sql: String, _ parameters: [String?] = []) throws -> String? {
        try session().queryRows(sql, parameters).first?.first ?? nil
    }

    func role(_ name: String) -> Database {
        Database(conninfo: conninfo.replacing("user=postgres", with: "user=\(name)"))
    }
}

extension PostgresCluster {
    /// What the server has logged: warnings and errors.
    var log: String {
        get throws { try String(contentsOfFile: directory + "/data/log", encoding: .utf8) }
    }
}
