/// What the operator is told when APNs will take nothing that is sent with a key.
enum KeyAdvice {
    /// How far clocks may differ before that is worth a word; a provider token is good for an hour.
    private static let tolerance: Int64 = 60_000

    static func sentence(_ answer: Answer, _ key: ProviderKey, _ server: ServerName, at unix: Int64) -> String {
        "APNs (\(server)) refuses \(key.name) with \(KnownReasons.name(of: answer)): \(advice(answer, at: unix)) "
            + "Until then nothing is sent there but one push a minute, to find out."
    }

    private static func advice(_ answer: Answer, at unix: Int64) -> String {
        switch answer.reason {
        case "ExpiredProviderToken", "InvalidProviderToken":
            if let skew = skew(answer, at: unix) { return skew }
            return answer.reason == "ExpiredProviderToken"
                ? "the provider token was just made, so see that this machine's clock is right."
                : "see that the team id, the key id and the private key belong together, and that the key is not revoked."
        case "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken":
            return "the key is for the other environment; make one for this, or set apns.environment."
        case "UnrelatedKeyIdInToken":
            return "the key does not belong to the app's team; set apns.key_id and apns.team_id."
        case "MissingProviderToken":
            return "the authorization did not arrive; see whether a proxy removes it."
        case "BadCertificate", "BadCertificateEnvironment":
            return "it wants a certificate; see that apns.url leads to APNs."
        default:
            return "see in developer.apple.com that the key is enabled for APNs and for the app."
        }
    }

    private static func skew(_ answer: Answer, at unix: Int64) -> String? {
        guard let date = answer.date, abs(unix - date) > tolerance else { return nil }
        let seconds = abs(unix - date) / 1000
        return "this machine's clock is \(seconds) s \(unix > date ? "ahead of" : "behind") APNs'; set it right."
    }
}
