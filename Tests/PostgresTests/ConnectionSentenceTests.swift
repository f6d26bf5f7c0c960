import Postgres
import Testing

/// What a person is told whose command got no connection, by what libpq said.
@Suite struct ConnectionSentenceTests {
    private static let prefix = #"connection to server at "db", port 5432 failed: "#

    @Test(
        arguments: [
            (
                "Connection refused",
                "Postgres cannot be reached (\(prefix)Connection refused); check ROOST_DATABASE_URL."
            ),
            (
                #"FATAL:  password authentication failed for user "ada""#,
                #"Postgres refuses the connection (\#(prefix)password authentication failed for user "ada"); "#
                    + "check the user, the password and the database in ROOST_DATABASE_URL."
            ),
            (
                "fe_sendauth: no password supplied",
                "Postgres refuses the connection (\(prefix)fe_sendauth: no password supplied); "
                    + "check the user, the password and the database in ROOST_DATABASE_URL."
            ),
            (
                "FATAL:  sorry, too many clients already",
                "Postgres refuses the connection (\(prefix)sorry, too many clients already); "
                    + "end sessions that nobody needs, or raise max_connections."
            ),
            (
                "FATAL:  the database system is starting up",
                "Postgres refuses the connection (\(prefix)the database system is starting up); try again in a moment."
            ),
        ])
    func whatIsSaid(_ reason: String, _ sentence: String) {
        #expect(PostgresError(.connection, Self.prefix + reason).connectionSentence == sentence)
    }
}
