/// A type whose cast to json, which row_to_json uses, fails for all values but one, as PostGIS' does for curves.
package enum TypeWithoutJSON {
    /// The errors that a value stands for: of whoever wrote the cast, of Postgres' inside, of what looks like an altered table,
    /// of values, the one that WHEN OTHERS does not catch and a writer need not hear of, and those by which Postgres means that asking
    /// again helps: a conflict of transactions, a sequence that was not used yet, an extension whose library is gone.
    package static let states = [
        "P0001", "0A000", "XX000", "42P01", "22023", "53200", "P0004", "40001", "55000", "58P01",
    ]

    /// Makes the type `state`: `fine` has JSON, `ends` ends the session, and 57014 is how a statement is cancelled.
    package static let sql = """
        create type state as enum ('fine', 'ends', '57014', '\(states.joined(separator: "', '"))');
        create function state_as_json(state) returns json language plpgsql as $f$
        begin
            if $1 = 'fine' then return '"fine"'; end if;
            if $1 = 'ends' then
                perform pg_terminate_backend(pg_backend_pid());
                perform pg_sleep(60);
            end if;
            raise exception 'no JSON' using errcode = $1::text;
        end $f$;
        create cast (state as json) with function state_as_json(state);
        """
}
