import CTestKeys
import Hub
import Testing
import Wire

@testable import Push

enum Samples {
    static let privatePEM = pem("P-256")
    private static let rsaPEM = pem("RSA")
    static let start = HubTime(monotonic: 1_000_000, unix: 1_790_000_000_000)

    static func key() throws -> ProviderKey {
        try ProviderKey(teamID: "TEAM567890", keyID: "KEY4567890", pem: privatePEM)
    }

    /// A new private key, as CTestKeys.h names its type.
    static func pem(_ type: String) -> String {
        let key = roost_test_key_create(type, type == "RSA" ? 2048 : 0)
        defer { roost_key_free(key) }
        let bytes = [UInt8](unsafeUninitializedCapacity: 4096) {
            $1 = roost_test_key_write(key, ROOST_PRIVATE_PEM, $0.baseAddress, 4096)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A service account as the Firebase console makes it.
    static func accountFile() throws -> String {
        let account = JSONWriter.object { account in
            account.member("type", "service_account")
            account.member("project_id", "roost-1")
            account.member("private_key_id", "k1")
            account.member("private_key", rsaPEM)
            account.member("client_email", "a@roost-1.iam.gserviceaccount.com")
            account.member("token_uri", "https://oauth2.googleapis.com/token")
        }
        return String(decoding: account, as: UTF8.self)
    }

    static func account() throws -> ServiceAccount { try ServiceAccount(json: Array(accountFile().utf8)) }

    static func configuration() throws -> APNsConfiguration { APNsConfiguration(key: try key()) }

    static func token(_ number: Int = 0) throws -> PushToken {
        let digits = String(number, radix: 16)
        return try #require(PushToken(String(repeating: "0", count: 64 - digits.count) + digits))
    }

    static func target(_ number: Int = 0, _ environment: PushEnvironment = .sandbox) throws -> Push.Target {
        .device(PushDestination(token: try token(number), environment: environment, bundle: "com.example.app"))
    }

    static func push(
        _ number: Int = 0, type: PushType = .alert, lane: String? = nil, replaces: Bool = false,
        payload: String = "{\"aps\":{\"alert\":\"Hello\"}}", seconds: Int64 = 3600,
        environment: PushEnvironment = .sandbox
    ) throws -> Push {
        Push(
            to: try target(number, environment), type: type, priority: 5, expiration: 0, payload: Array(payload.utf8),
            lane: lane.map { Name($0) }, replaces: replaces, deadline: start.unix + seconds * 1000)
    }
}
