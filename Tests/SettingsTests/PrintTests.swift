import Settings
import Testing

@Suite("What is printed")
struct PrintTests {
    @Test(
        "connection strings lose their passwords and nothing else",
        arguments: [
            ("postgres://me:s3cret@db:5432/chat", "postgres://me:***@db:5432/chat"),
            ("postgres://me:p@ss@db/chat?application_name=x", "postgres://me:***@db/chat?application_name=x"),
            ("postgres://me:s/cret@db/chat", "postgres://me:***@db/chat"),
            ("postgres://me@db/chat", "postgres://me@db/chat"),
            ("postgres://db:5432/chat", "postgres://db:5432/chat"),
            ("postgresql://db/chat?password=s3cret&a=b", "postgresql://db/chat?password=***&a=b"),
            ("host=db password=s3cret dbname=chat", "host=db password=*** dbname=chat"),
            (#"host=db password = 's3 \' cret' dbname=chat"#, "host=db password = *** dbname=chat"),
            ("sslpassword=a password='never closed", "sslpassword=*** password=***"),
            ("host=db user=password", "host=db user=password"),
            ("host=db password=two words  dbname=chat", "host=db password=***  dbname=chat"),
            ("host=db password=two words", "host=db password=***"),
            ("host=db passwd=s3cret dbname=chat", "host=db passwd=*** dbname=chat"),
        ])
    func masks(text: String, expected: String) {
        #expect(Mask.connection(text) == expected)
    }

    @Test(
        "URLs lose what may be a key",
        arguments: [
            ("https://me:s3cret@keys/jwks.json", "https://me:***@keys/jwks.json"),
            ("https://keys/jwks.json?apikey=s3cret&a=b", "https://keys/jwks.json?***"),
            ("https://keys/jwks.json#s3cret", "https://keys/jwks.json#***"),
            ("https://keys/jwks.json", "https://keys/jwks.json"),
        ])
    func masksURLs(text: String, expected: String) {
        #expect(Mask.url(text) == expected)
    }

    @Test("the configuration, with who set what and without secrets")
    func printed() throws {
        let secret = String(repeating: "x", count: 40)
        let configuration = try RoostConfiguration.load(
            flags: ["database.url": "postgres://me:s3cret@db/chat"],
            environment: [
                "ROOST_JWT_SECRET": secret, "ROOST_HTTP_HOST": "0.0.0.0",
                "ROOST_JWT_PREVIOUS_SECRETS": secret + " " + secret, "ROOST_JWKS_URL": "http://u:s3cret@k/?k=s3cret",
            ], files: [])
        let printed = configuration.printed()
        #expect(!printed.contains("s3cret"))
        #expect(!printed.contains(secret))
        let lines = printed.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(lines.contains("url: \"postgres://me:***@db/chat\" # --database-url"))
        #expect(lines.contains("secret: \"***\" # ROOST_JWT_SECRET"))
        #expect(lines.contains("host: 0.0.0.0 # ROOST_HTTP_HOST"))
        #expect(lines.contains("port: 4001 # default"))
        #expect(lines.contains("loops: 0 # default"))
    }

    @Test("long values are folded, and read back as they were")
    func folded() throws {
        let statement =
            "select\n\t'a \\ \"quoted\" text   with   spaces', "
            + (0..<40).map { "column_\($0)" }.joined(separator: ", ") + String(repeating: "y", count: 200)
            + " from app.notes where author = $1 and seen = $2 and at = $3"
        let configuration = try RoostConfiguration.load(environment: ["ROOST_USERS_STATEMENT": statement], files: [])
        let printed = configuration.printed()
        #expect(printed.split(separator: "\n").allSatisfy { $0.count <= 80 })
        try withFile(printed) { path in
            let again = try RoostConfiguration.load(file: path, environment: [:])
            #expect(again.usersStatement == statement)
            #expect(again.values.map(\.value) == configuration.values.map(\.value))
        }
    }
}
