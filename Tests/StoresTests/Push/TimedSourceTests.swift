import Stores
import Testing
import Wire

@Suite("Columns of alerts.timed")
struct TimedSourceTests {
    @Test("are named with semicolons or line breaks between them, each perhaps with a condition")
    func list() throws {
        let sources = try TimedSource.list(
            """
            public.reminders.reminder_time unless done_at is not null;
            public.tasks.deadline UNLESS status in ('done; or so', 'gone', "odd;name")
            app.Größe.fällig ;

            """)
        #expect(
            sources == [
                TimedSource(
                    schema: "public", table: "reminders", column: "reminder_time", unless: "done_at is not null"),
                TimedSource(
                    schema: "public", table: "tasks", column: "deadline",
                    unless: #"status in ('done; or so', 'gone', "odd;name")"#),
                TimedSource(schema: "app", table: "Größe", column: "fällig"),
            ])
        #expect(try TimedSource.list(" \n;") == [])
    }

    @Test("are names, which are bytes")
    func bytes() throws {
        let sources = try TimedSource.list("public.t.e\u{301}; public.t.\u{e9}")
        #expect(sources.count == 2 && sources[0] != sources[1])
        #expect(!sources[0].isOf("public", "T"))
    }

    @Test(
        "are refused with what to write instead",
        arguments: [
            ("reminders.reminder_time", "SCHEMA.TABLE.COLUMN"), ("a.b.c.d", "SCHEMA.TABLE.COLUMN"),
            ("a..c", "SCHEMA.TABLE.COLUMN"),
            ("a.b.c when true", "nothing else"), ("a.b.c unless", "no condition"), ("a.b.c unlessx", "no condition"),
            ("a.b.c; a.b.c unless x", "twice"),
        ])
    func refused(text: String, says: String) {
        let error = #expect(throws: TimedSourceError.self) { try TimedSource.list(text) }
        #expect(error?.description.contains(says) == true, "\(String(describing: error))")
    }
}
