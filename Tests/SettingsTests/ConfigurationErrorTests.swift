import Settings
import Testing

/// The sentences that operators get to read.
@Suite("Wrong configuration")
struct ConfigurationErrorTests {
    @Test(
        "a variable",
        arguments: [
            ("ROOST_HTTP_PORT", "http", "ROOST_HTTP_PORT is 'http', expected a whole number from 1 to 65535."),
            ("ROOST_HTTP_PORT", "0", "ROOST_HTTP_PORT is '0', expected a whole number from 1 to 65535."),
            ("ROOST_HTTP_PORT", "1_", "ROOST_HTTP_PORT is '1_', expected a whole number from 1 to 65535."),
            (
                "ROOST_HTTP_PORT", "tcp://10.0.0.1:4000",
                "ROOST_HTTP_PORT is 'tcp://10.0.0.1:4000', expected a whole number from 1 to 65535; Kubernetes sets it for a "
                    + "service of that name, and `enableServiceLinks: false` in the pod stops that."
            ),
            ("ROOST_LIMITS_PRIVATE_ONLY", "ja", "ROOST_LIMITS_PRIVATE_ONLY is 'ja', expected true or false."),
            (
                "ROOST_LOG_LEVEL", "loud",
                "ROOST_LOG_LEVEL is 'loud', expected one of trace, debug, info, notice, warning, error, critical."
            ),
            (
                "ROOST_JWT_SECRET", "short",
                "ROOST_JWT_SECRET has 5 bytes, expected at least 32 bytes "
                    + "(`openssl rand -hex 32` makes a good one)."
            ),
            (
                "ROOST_DATABASE_URL", "chat",
                "ROOST_DATABASE_URL has another form (not shown, as it may hold a password), expected a connection string such as "
                    + "postgres://USER:PASSWORD@HOST:5432/DATABASE."
            ),
            (
                "ROOST_JWT_PREVIOUS_SECRETS", "0123456789012345678901234567890123456789 short",
                "ROOST_JWT_PREVIOUS_SECRETS has 46 bytes, expected secrets of at least 32 bytes each, "
                    + "with a space between them."
            ),
            (
                "ROOST_JWT_SECRET", "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0",
                "jwt.secret (ROOST_JWT_SECRET) is a PEM key, and a public key as an HMAC secret lets everybody sign; "
                    + "put it into a JWK Set and name that in jwks.file."
            ),
            (
                "ROOST_JWT_PREVIOUS_SECRETS", "-----BEGIN-PUBLIC-KEY-----MIIBIjANBgkqhkiG9w0",
                "jwt.previous_secrets (ROOST_JWT_PREVIOUS_SECRETS) is a PEM key, and a public key as an HMAC secret "
                    + "lets everybody sign; put it into a JWK Set and name that in jwks.file."
            ),
            (
                "ROOST_JWT_ALGORITHMS", "RS256, none",
                "ROOST_JWT_ALGORITHMS is 'RS256, none', expected one or more of HS256, HS384, HS512, RS256, RS384, "
                    + "RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA."
            ),
            (
                "ROOST_JWT_ALGORITHMS", "rs256",
                "ROOST_JWT_ALGORITHMS is 'rs256', expected one or more of HS256, HS384, HS512, RS256, RS384, RS512, "
                    + "PS256, PS384, PS512, ES256, ES384, ES512, EdDSA."
            ),
            (
                "ROOST_JWKS_URL", "ftp://me:s3cret@host/keys",
                "ROOST_JWKS_URL has another form (not shown, as it may hold a password), expected a URL that begins with https:// or http://."
            ),
            ("ROOST_CONFIG", "/dev/zero", "/dev/zero is no file that can be read to its end; name a YAML file."),
            ("ROOST_CONFIG", "/tmp", "/tmp is a folder; name a YAML file."),
            ("ROOST_CONFIG", "/nowhere.yaml", "ROOST_CONFIG names /nowhere.yaml, which does not exist."),
            (
                "ROOST_TIMEOUTS_IDLE", "20",
                "timeouts.ping_after (25, default) must be less than timeouts.idle (20, ROOST_TIMEOUTS_IDLE), "
                    + "or no ping is sent in time."
            ),
            (
                "ROOST_OPS_PORT", "4000",
                "ops.port (4000, ROOST_OPS_PORT) must not be http.port (4000, default), also where the hosts differ."
            ),
        ])
    func variable(name: String, value: String, expected: String) {
        #expect(throws: ConfigurationError(message: expected)) {
            try RoostConfiguration.load(environment: [name: value], files: [])
        }
    }

    @Test(
        "a file",
        arguments: [
            ("http:\n  port: many\n", "FILE:2: http.port is 'many', expected a whole number from 1 to 65535."),
            ("http:\n  port: [1, 2]\n", "FILE:2: http.port is a list, expected a whole number from 1 to 65535."),
            ("# ports\n\nhttp:\n  prot: 1\n", "FILE:4: there is no key http.prot; did you mean http.port?"),
            (
                "timeouts:\n  ping-after: 1\n",
                "FILE:2: there is no key timeouts.ping-after; did you mean timeouts.ping_after?"
            ),
            (
                "loops:\n  number: 1\n",
                "FILE:2: loops takes a value and no keys below it, expected a whole number from 0 to 1024."
            ),
            ("http: 4000\n", "FILE:1: http is a section and takes no value of its own; its keys are KEYS."),
            ("http: [4000]\n", "FILE:1: http is a section and takes no value of its own; its keys are KEYS."),
            ("http:\n  nonsense: 1\n", "FILE:2: there is no key http.nonsense; the keys of http are KEYS."),
            ("http:\n  level: debug\n", "FILE:2: there is no key http.level; did you mean log.level?"),
            ("port: 4000\n", "FILE:1: there is no key port; did you mean http.port or ops.port?"),
            ("jwks:\n  fil: keys.json\n", "FILE:2: there is no key jwks.fil; did you mean jwks.file?"),
            ("http:\n  {port: 0}\n", "FILE:2: http.port is '0', expected a whole number from 1 to 65535."),
            (
                "http:\n  host: \"a\\nb\"\n",
                "FILE:2: http.host is 'a\\nb', expected a host name or an address, such as 127.0.0.1, 0.0.0.0 or ::1."
            ),
        ])
    func file(text: String, expected: String) throws {
        try withFile(text) { path in
            let keys = Setting.all.map(\.key).filter { $0.hasPrefix("http.") }.map { $0.dropFirst(5) }
            let message = expected.replacing("FILE", with: path)
                .replacing("KEYS", with: keys.joined(separator: ", "))
            #expect(throws: ConfigurationError(message: message)) {
                try RoostConfiguration.load(file: path, environment: [:])
            }
        }
    }

    @Test(
        "a file that is no YAML, a list, or has a key twice: one sentence that names the line",
        arguments: [
            ("a: b: c\n", "FILE:1: this is not YAML: mapping values are not allowed in this context."),
            ("- 1\n", "FILE has no keys with values, such as `loops: 2`; config/roost.yaml shows how it is written."),
            ("a: 1\na: 2\n", "FILE:2: a is set twice, in the lines 1 and 2; keep one of them."),
            (
                "http.port: 1\nhttp:\n  port: 2\n",
                "FILE:3: http.port is set twice, in the lines 1 and 3; keep one of them."
            ),
            (
                "loops: 2\nhttp:\n  host: a\n  # again\n  port: 1\n  'port': 2\nops:\n  port: 3\n",
                "FILE:6: http.port is set twice, in the lines 5 and 6; keep one of them."
            ),
            ("http:\n\tport: 1\n", "FILE:2: the line is indented with a tab; YAML takes spaces alone."),
            (
                "limits:\n  connections: [[1]]\n",
                "FILE:2: limits.connections is a list of lists or of keys, expected one value."
            ),
        ])
    func unreadable(text: String, expected: String) throws {
        try withFile(text) { path in
            #expect(throws: ConfigurationError(message: expected.replacing("FILE", with: path))) {
                try RoostConfiguration.load(file: path, environment: [:])
            }
        }
    }

    @Test(
        "what the parser quotes of a file is not shown: it may be a secret",
        arguments: [
            "jwt:\n  secret: \"swordfish\n", "jwt:\n  secret: swordfish: x\n", "jwt:\n  secret: [swordfish\n",
            "jwt:\n  secret: @swordfish\n", "jwt:\n  secret: \"swordfish\\q\"\n",
        ])
    func quotesNothing(text: String) throws {
        try withFile(text) { path in
            let error = #expect(throws: ConfigurationError.self) {
                try RoostConfiguration.load(file: path, environment: [:])
            }
            let message = try #require(error?.message)
            #expect(message.hasPrefix("\(path):"))
            #expect(!message.contains("swordfish"))
            #expect(!message.contains("\n"))
        }
    }

    @Test("a wrong value is found although a stronger one hides it")
    func hidden() throws {
        #expect(throws: ConfigurationError.self) {
            try RoostConfiguration.load(flags: ["loops": "1"], environment: ["ROOST_LOOPS": "x"], files: [])
        }
    }

    @Test("a secret that no algorithm of the allow list uses lets nobody in")
    func algorithmsWithoutKeys() throws {
        let secret = String(repeating: "s", count: 32)
        var environment = ["ROOST_JWT_SECRET": secret, "ROOST_JWT_ALGORITHMS": "RS256,ES256"]
        let error = #expect(throws: ConfigurationError.self) {
            try RoostConfiguration.load(environment: environment, files: [])
        }
        #expect(
            error?.message
                == "jwt.algorithms (RS256,ES256, ROOST_JWT_ALGORITHMS) allows nothing that can be verified with "
                + "jwt.secret (***, ROOST_JWT_SECRET), so nobody could come in; add HS256, or name a key set in "
                + "jwks.file or jwks.url.")
        environment["ROOST_JWKS_FILE"] = "keys.json"
        let configuration = try RoostConfiguration.load(environment: environment, files: [])
        #expect(configuration.jwtAlgorithms == ["RS256", "ES256"])
    }

    @Test(
        "one way to verify tokens is enough",
        arguments: [
            ("ROOST_JWT_SECRET", "01234567890123456789012345678901"), ("ROOST_JWKS_FILE", "k"),
            ("ROOST_JWKS_URL", "http://k"),
        ])
    func requiredKeys(name: String, value: String) throws {
        try RoostConfiguration.load(environment: [name: value], files: []).requireKeys(for: "roost serve")
        let error = #expect(throws: ConfigurationError.self) {
            try RoostConfiguration.load(environment: [:], files: []).requireKeys(for: "roost serve")
        }
        #expect(
            error?.message
                == "roost serve needs jwt.secret, jwks.file or jwks.url: set ROOST_JWT_SECRET to at least 32 bytes "
                + "(`openssl rand -hex 32` makes a good one), or ROOST_JWKS_FILE or ROOST_JWKS_URL to where your "
                + "identity service's keys are.")
    }

    @Test("what a command cannot do without is named")
    func required() throws {
        let configuration = try RoostConfiguration.load(environment: [:], files: [])
        let error = #expect(throws: ConfigurationError.self) {
            try configuration.requireJWTSecret(for: "roost token")
        }
        #expect(
            error?.message
                == "roost token needs jwt.secret: set ROOST_JWT_SECRET, or jwt.secret in the configuration file, to at "
                + "least 32 bytes (`openssl rand -hex 32` makes a good one).")
    }
}
