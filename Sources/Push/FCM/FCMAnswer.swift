import Documents

/// The meaning of FCM's answers (Firebase, "FCM Error Codes": `ErrorCode`, and `google.rpc.Status` around it).
enum FCMAnswer {
    private static let limits = JSONDocument.Limits(bytes: 65_536, depth: 16)
    /// The reason of an answer that calls the token malformed. Google has no word of its own for it.
    static let badToken = "INVALID_ARGUMENT token"
    /// The pause after a 429 that names none, in milliseconds (Firebase, "Best practices when sending FCM messages at scale").
    private static let quotaPause: Int64 = 60_000

    /// Returns the answer with its reason: the FCM error code, or the status of Google's APIs if there is none.
    static func read(_ answer: Answer) -> Answer {
        let error: JSONDocument?
        // A body that is not JSON comes from something between us and FCM: its status has to do.
        do { error = try JSONDocument(parsing: answer.body, limits: limits)["error"] } catch { return answer }
        var read = answer
        var reason = error?["status"]?.string ?? ""
        var isAboutToken = error?["message"]?.string?.contains("registration token") ?? false
        for detail in error?["details"]?.elements ?? [] {
            if let code = detail["errorCode"]?.string { reason = code }
            for violation in detail["fieldViolations"]?.elements ?? [] {
                isAboutToken = isAboutToken || violation["field"]?.string == "message.token"
            }
        }
        read.reason = reason == "INVALID_ARGUMENT" && isAboutToken ? badToken : Answer.printable(reason)
        if answer.status == 429 { read.retryAfter = answer.retryAfter ?? quotaPause }
        return read
    }

    static func verdict(on answer: Answer) -> AnswerVerdict {
        switch (answer.status, answer.reason) {
        case (200..<300, _): .delivered
        case (_, "UNREGISTERED"): .unregistered(since: nil)
        case (_, badToken), (_, "SENDER_ID_MISMATCH"): .badToken
        // An error of Apple or a browser's maker concerns the device, not our credential.
        case (_, "THIRD_PARTY_AUTH_ERROR"): .refused
        case (401, _): .staleCredential
        case (403, _): .badKey
        case (429, _), (500..., _): .laterForAll
        default: .refused
        }
    }

    /// Advises the operator when FCM accepts nothing that is sent with an account.
    static func advice(on answer: Answer) -> String {
        switch answer.status {
        case 401: "check that fcm.service_account is of the project, and that no proxy removes the authorization."
        default:
            "enable the Firebase Cloud Messaging API (V1) in the project, and give the account the role Firebase Cloud Messaging API Admin."
        }
    }
}

extension KnownReasons {
    static let fcm = KnownReasons(
        all: [
            FCMAnswer.badToken, "UNSPECIFIED_ERROR", "INVALID_ARGUMENT", "UNREGISTERED", "SENDER_ID_MISMATCH",
            "QUOTA_EXCEEDED",
            "UNAVAILABLE", "INTERNAL", "THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND",
            "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED",
        ])
}
