import Hub
import Wire

/// Takes every token for the same user's: what a signature costs is not the hub's matter.
struct FixedVerifier: TokenVerifier {
    private let claims = FixedVerifier.claims(user: 1 << 24)

    func verifyToken(_ token: String, at now: HubTime) throws(Refusal) -> Claims { claims }

    static func claims(user number: Int) -> Claims {
        let user = ChatTable.user(number)
        return Claims(
            role: "authenticated", subject: Name(user), expiresAt: .max,
            json: Array(#"{"role":"authenticated","sub":"\#(user)","exp":4102444800}"#.utf8))
    }
}
