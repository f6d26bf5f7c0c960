import RoostClient
import Testing
import Wire

@Suite struct NextActionTests {
    /// One of each; `docs/errors.md` lists them, and a test of Wire holds that against the type.
    private static let all: [Refusal] =
        [
            .apiKeyMissing, .tokenExpired(secondsAgo: 5), .claimsMissing, .expirationInvalid, .tokenMalformed,
            .signatureInvalid, .keyUnknown, .issuerRefused, .audienceRefused, .tokenNotYetValid, .signer("a detail"),
            .topicNameRequired, .unmatchedTopic, .unauthorized(topic: "r"), .readRevoked(topic: "r"),
            .writeUnauthorized(topic: "r"), .trackUnauthorized(topic: "r"), .writesPending, .replayNotAllowed,
            .replayInvalid, .replayFailed, .privateOnly, .databaseUnavailable, .changesLost, .restarting,
            .presencePayloadNotAMap, .presenceEventUnknown, .invalidBinding("a detail"),
            .policyFailed, .changesTimeout(milliseconds: 7), .removed(topic: "r", seconds: nil),
            .removed(topic: "r", seconds: 7),
            .stream(.isPublic), .stream(.notFound), .stream(.ended(at: 7)), .stream(.cancelled(at: 7)),
            .stream(.content), .stream(.order), .stream(.fenced), .stream(.tooLarge(7)),
            .stream(.closeFailed("a detail")), .stream(.full), .stream(.unavailable),
        ] + Limit.allCases.map { .over($0, 7) } + PolicyFault.allCases.map { .channelPolicyFailed($0) }

    @Test(arguments: all) func theClientDoesWhatTheHubExpects(refusal: Refusal) {
        let expected: NextAction =
            switch refusal.nextAction {
            case .retry: .retry
            case .refreshToken: .refreshToken
            case .giveUp: .giveUp
            }
        #expect(NextAction(reason: refusal.reason) == expected, "\(refusal.reason)")
    }
}
