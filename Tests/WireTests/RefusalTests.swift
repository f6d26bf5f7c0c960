import Foundation
import Testing
import Wire

@Suite struct RefusalTests {
    /// One of each. The switch makes the compiler ask for a line here when a case is added.
    static let all: [Refusal] =
        [
            .apiKeyMissing, .tokenExpired(secondsAgo: 5), .claimsMissing, .expirationInvalid, .tokenMalformed,
            .signatureInvalid, .keyUnknown, .issuerRefused, .audienceRefused, .tokenNotYetValid,
            .signer("a detail"), .topicNameRequired, .unmatchedTopic, .unauthorized(topic: "room1"),
            .readRevoked(topic: "room1"), .writeUnauthorized(topic: "room1"), .trackUnauthorized(topic: "room1"),
            .writesPending, .replayNotAllowed, .replayInvalid, .replayFailed, .privateOnly,
            .databaseUnavailable, .changesLost, .policyFailed, .restarting, .presencePayloadNotAMap,
            .presenceEventUnknown,
            .appStateUnknown, .summaryReserved, .persistTTLInvalid, .roleInvalid, .invalidBinding("a detail"),
            .changesTimeout(milliseconds: 77),
        ] + Limit.allCases.map { .over($0, 77) }
        + Refusal.PresenceBound.allCases.map { .presenceListFull($0, 77, isCounted: true) }
        + [.presenceListFull(.bytes, 77, isCounted: false)] + problems.map { .stream($0) }
        + PolicyFault.allCases.map { .channelPolicyFailed($0) }
        + [.removed(topic: "room1", seconds: nil), .removed(topic: "room1", seconds: 77)]

    static let problems: [StreamProblem] = [
        .isPublic, .name, .reserved, .notFound, .ended(at: 77), .cancelled(at: 77), .generation, .content, .order,
        .fenced,
        .tooLarge(77), .closeFailed("a detail"), .full, .unavailable,
    ]

    private func expected(_ refusal: Refusal) -> (reason: String, message: String) {
        switch refusal {
        case .apiKeyMissing: ("API key is missing", "API key is missing")
        case .tokenExpired: ("InvalidJWTToken: Token has expired 5 seconds ago", "Token has expired 5 seconds ago")
        case .claimsMissing:
            (
                "InvalidJWTToken: Fields `role` and `exp` are required in JWT",
                "Fields `role` and `exp` are required in JWT"
            )
        case .expirationInvalid:
            ("InvalidJWTToken: Token expiration time is invalid", "Token expiration time is invalid")
        case .tokenMalformed:
            ("MalformedJWT: The token provided is not a valid JWT", "The token provided is not a valid JWT")
        case .signatureInvalid:
            ("JwtSignatureError: Failed to validate JWT signature", "Failed to validate JWT signature")
        case .keyUnknown:
            (
                "JwtSignerError: Failed to generate JWT signer, check your JWT secret or JWKS configuration",
                "Failed to generate JWT signer, check your JWT secret or JWKS configuration"
            )
        case .issuerRefused:
            (
                "InvalidJWTToken: The issuer (iss) of the token is not accepted here",
                "The issuer (iss) of the token is not accepted here"
            )
        case .audienceRefused:
            (
                "InvalidJWTToken: The audience (aud) of the token is not this service",
                "The audience (aud) of the token is not this service"
            )
        case .tokenNotYetValid: ("InvalidJWTToken: Token is not valid yet", "Token is not valid yet")
        case .signer: ("JwtSignerError: a detail", "a detail")
        case .topicNameRequired: ("TopicNameRequired: You must provide a topic name", "You must provide a topic name")
        case .unmatchedTopic: ("unmatched topic", "unmatched topic")
        case .unauthorized:
            (
                "Unauthorized: You do not have permissions to read from this Channel topic: room1",
                "You do not have permissions to read from this Channel topic: room1"
            )
        case .readRevoked:
            (
                "Unauthorized: You no longer have permission to read from this Channel topic: room1",
                "You no longer have permission to read from this Channel topic: room1"
            )
        case .writeUnauthorized:
            (
                "Unauthorized: You do not have permissions to write to this Channel topic: room1",
                "You do not have permissions to write to this Channel topic: room1"
            )
        case .trackUnauthorized:
            (
                "Unauthorized: You do not have permissions to track presence in this Channel topic: room1",
                "You do not have permissions to track presence in this Channel topic: room1"
            )
        case .writesPending:
            (
                "AuthorizationPending: Too many messages wait for the permission to write to this Channel",
                "Too many messages wait for the permission to write to this Channel"
            )
        case .replayNotAllowed:
            (
                "UnableToReplayMessages: Replay is not allowed for public channels",
                "Replay is not allowed for public channels"
            )
        case .replayInvalid: ("UnableToReplayMessages: Replay params are not valid", "Replay params are not valid")
        case .replayFailed:
            (
                "UnableToReplayMessages: Realtime was unable to replay messages",
                "Realtime was unable to replay messages"
            )
        case .privateOnly:
            ("PrivateOnly: This project only allows private channels", "This project only allows private channels")
        case .over(.connections, _):
            (
                "ConnectionRateLimitReached: Too many connected users: this hub takes 77 sockets (limits.connections); try again later",
                "Too many connected users: this hub takes 77 sockets (limits.connections); try again later"
            )
        case .over(.connectionsPerAddress, _):
            (
                "ConnectionRateLimitReached: Too many connected users: one address may have 77 sockets (limits.connections_per_address); close another first",
                "Too many connected users: one address may have 77 sockets (limits.connections_per_address); close another first"
            )
        case .over(.connectionsPerUser, _):
            (
                "ConnectionRateLimitReached: Too many connected users: one user may have 77 sockets (limits.connections_per_user); close another first",
                "Too many connected users: one user may have 77 sockets (limits.connections_per_user); close another first"
            )
        case .over(.channelsPerConnection, _):
            (
                "ChannelRateLimitReached: Too many channels: one socket may join 77 (limits.channels_per_connection); leave one first",
                "Too many channels: one socket may join 77 (limits.channels_per_connection); leave one first"
            )
        case .over(.filtersPerChannel, _):
            (
                "RealtimeDisabledForConfiguration: Too many postgres_changes: one join may have 77 (limits.filters_per_channel); spread them over several channels",
                "Too many postgres_changes: one join may have 77 (limits.filters_per_channel); spread them over several channels"
            )
        case .over(.patternsPerConnection, _):
            (
                "RealtimeDisabledForConfiguration: Too many patterns: the filters of one socket may have 77 of like, ilike, match and imatch (limits.patterns_per_connection); filter in the client, or leave a channel first",
                "Too many patterns: the filters of one socket may have 77 of like, ilike, match and imatch (limits.patterns_per_connection); filter in the client, or leave a channel first"
            )
        case .over(.messageBytes, _):
            (
                "message_size_exceeded: The message is too large: it may have 77 bytes (limits.message_bytes); send less",
                "The message is too large: it may have 77 bytes (limits.message_bytes); send less"
            )
        case .over(.payloadBytes, _):
            (
                "payload_size_exceeded: The payload is too large: it may have 77 bytes (limits.payload_bytes); send less",
                "The payload is too large: it may have 77 bytes (limits.payload_bytes); send less"
            )
        case .over(.joinsPerSecond, _):
            (
                "ClientJoinRateLimitReached: Too many joins per second: one socket may make 77 (limits.joins_per_second); join again later",
                "Too many joins per second: one socket may make 77 (limits.joins_per_second); join again later"
            )
        case .over(.presencePerSecond, _):
            (
                "ClientPresenceRateLimitReached: Too many presence messages per second: one socket may send 77 (limits.presence_per_second); send again later",
                "Too many presence messages per second: one socket may send 77 (limits.presence_per_second); send again later"
            )
        case .databaseUnavailable:
            (
                "UnableToConnectToProject: Realtime was unable to connect to the project database",
                "Realtime was unable to connect to the project database"
            )
        case .policyFailed:
            (
                "RlsPolicyError: A policy failed on changes that you missed; join again, and if it happens again, "
                    + "correct the policy that the hub's log names",
                "A policy failed on changes that you missed; join again, and if it happens again, correct the policy "
                    + "that the hub's log names"
            )
        case .channelPolicyFailed(.error):
            (
                "RlsPolicyError: A policy on realtime.messages failed; correct the policy that the hub's log names",
                "A policy on realtime.messages failed; correct the policy that the hub's log names"
            )
        case .channelPolicyFailed(.canceled):
            (
                "QueryCanceled: The policies on realtime.messages took too long; try again later",
                "The policies on realtime.messages took too long; try again later"
            )
        case .changesLost:
            (
                "ChangesLost: Changes were deleted before they were delivered; load the data again",
                "Changes were deleted before they were delivered; load the data again"
            )
        case .restarting:
            ("RealtimeRestarting: Realtime is restarting, please standby", "Realtime is restarting, please standby")
        case .presencePayloadNotAMap: ("Presence track payload must be a map", "Presence track payload must be a map")
        case .appStateUnknown:
            (
                "The state of the app must be active, inactive or background",
                "The state of the app must be active, inactive or background"
            )
        case .over(.presenceBytes, _):
            (
                "payload_size_exceeded: The presence payload is too large: it may have 77 bytes (limits.presence_bytes); send less",
                "The presence payload is too large: it may have 77 bytes (limits.presence_bytes); send less"
            )
        case .presenceEventUnknown:
            ("Presence event must be track or untrack", "Presence event must be track or untrack")
        case .summaryReserved:
            (
                "ReservedEvent: Broadcasts of `summary` and `end` in a live-activity channel come from the hub alone; choose another event",
                "Broadcasts of `summary` and `end` in a live-activity channel come from the hub alone; choose another event"
            )
        case .presenceListFull(let bound, _, let isCounted): listFull(bound, isCounted)
        case .roleInvalid:
            (
                "InvalidJWTToken: The claim `role` of the token has a character U+0000, which no role of Postgres has; issue another token",
                "The claim `role` of the token has a character U+0000, which no role of Postgres has; issue another token"
            )
        case .invalidBinding: ("RealtimeDisabledForConfiguration: a detail", "a detail")
        case .persistTTLInvalid:
            (
                "InvalidPersistTtl: The ttl of persist must be a whole number of seconds from 1 to 259200",
                "The ttl of persist must be a whole number of seconds from 1 to 259200"
            )
        case .changesTimeout:
            (
                "PostgresChangesSubscribeTimeout: Timed out after 77ms waiting for the postgres_changes subscription",
                "Timed out after 77ms waiting for the postgres_changes subscription"
            )
        case .stream(let problem): Self.expected(problem)
        case .removed(_, nil):
            (
                "Unauthorized: You were removed from this Channel topic: room1",
                "You were removed from this Channel topic: room1"
            )
        case .removed:
            (
                "Unauthorized: You were removed from this Channel topic: room1; you may join again in 77 seconds",
                "You were removed from this Channel topic: room1; you may join again in 77 seconds"
            )
        }
    }

    private static func expected(_ problem: StreamProblem) -> (reason: String, message: String) {
        let (code, message) =
            switch problem {
            case .isPublic: ("StreamTopic", "The channel of a stream is private: join it with private: true")
            case .name: ("StreamTopic", "A stream's name has 1 to 200 bytes, and no empty part between slashes")
            case .reserved:
                (
                    "ReservedEvent",
                    "Broadcasts of `stream` in the channel of a stream come from the hub alone; send append to write it"
                )
            case .notFound: ("StreamNotFound", "There is no such stream: create it first")
            case .ended: ("StreamEnded", "The stream has ended at 77 bytes")
            case .cancelled: ("StreamCancelled", "The stream was cancelled at 77 bytes: stop writing it")
            case .generation:
                ("StreamGeneration", "The member id is of another stream than the one that has this name now")
            case .content:
                (
                    "StreamContent",
                    "The payload is not what the stream takes: send delta for text, messages for JSON, base64 for bytes"
                )
            case .order:
                ("StreamOrder", "The number seq is not this producer's next; each epoch begins with 0")
            case .fenced:
                ("StreamFenced", "Another incarnation of this producer has taken over: begin a new epoch to go on")
            case .tooLarge: ("StreamTooLarge", "A stream may have 77 bytes (streams.bytes)")
            case .closeFailed:
                (
                    "StreamCloseFailed",
                    "The stream is still open, because the statement of streams.on_close failed: a detail"
                )
            case .full: ("StreamsFull", "The hub has no room for more in its streams; try again later")
            case .unavailable: ("StreamsUnavailable", "Streams cannot be written now; try again in a moment")
            }
        return ("\(code): \(message)", message)
    }

    private func listFull(_ bound: Refusal.PresenceBound, _ isCounted: Bool) -> (reason: String, message: String) {
        let full =
            switch bound {
            case .members: "The list of this channel is full at 77 members (presence.listed_members)"
            case .bytes: "The list of this channel is full at 77 bytes (presence.listed_bytes)"
            case .total: "The lists of all channels are full at 77 bytes (presence.total_bytes)"
            }
        let message = full + (isCounted ? "; you are counted but not shown" : "; you are shown as before")
        return ("PresenceListFull: " + message, message)
    }

    @Test(arguments: all) func saysWhatClientsKnow(_ refusal: Refusal) {
        #expect(refusal.reason == expected(refusal).reason)
        #expect(refusal.message == expected(refusal).message)
    }

    @Test(arguments: all) func answersWithAnObject(_ refusal: Refusal) throws {
        let response = try JSON(parsing: refusal.response)
        #expect(response.kind == .object, "a bare string makes the Python client drop the frame")
        #expect(response["reason"]?.string == refusal.reason)
    }

    /// The codes of supabase/realtime 2.174, which clients compare as a whole; our own where it has none.
    @Test(arguments: [
        (Refusal.writeUnauthorized(topic: "r"), "unauthorized"), (.over(.payloadBytes, 7), "payload_size_exceeded"),
        (.databaseUnavailable, "unable_to_connect_to_project"), (.persistTTLInvalid, "invalid_persist_ttl"),
        (.channelPolicyFailed(.error), "rls_policy_error"), (.channelPolicyFailed(.canceled), "query_canceled"),
        (.writesPending, "AuthorizationPending"), (.stream(.notFound), "StreamNotFound"),
    ])
    func aRefusedBroadcastHasACodeAndASentence(_ refusal: Refusal, _ code: String) throws {
        let response = try JSON(parsing: refusal.broadcastResponse)
        #expect(response["error"]?.string == code)
        #expect(response["reason"]?.string == refusal.reason)
    }

    @Test func quotesWhatClientsWrote() throws {
        let refusal = Refusal.unauthorized(topic: "a\"b\\\n")
        #expect(try JSON(parsing: refusal.response)["reason"]?.string == refusal.reason)
    }

    @Test func repeatsAndRefreshesOnlyWhereThatHelps() {
        let all = Self.all.filter {
            switch $0 {
            case .over, .presenceListFull, .stream, .removed: false
            default: true
            }
        }
        let actions = Dictionary(grouping: all, by: \.nextAction).mapValues { Set($0.map(\.message)) }
        #expect(
            actions[.retry] == [
                "Realtime was unable to connect to the project database",
                "Realtime is restarting, please standby", "Token is not valid yet",
                "Failed to generate JWT signer, check your JWT secret or JWKS configuration",
                "Too many messages wait for the permission to write to this Channel",
                "Changes were deleted before they were delivered; load the data again",
                "A policy failed on changes that you missed; join again, and if it happens again, correct the policy "
                    + "that the hub's log names",
                "Changes were deleted before they were delivered; load the data again",
                "A policy on realtime.messages failed; correct the policy that the hub's log names",
                "The policies on realtime.messages took too long; try again later",
                "Realtime was unable to replay messages",
                "Timed out after 77ms waiting for the postgres_changes subscription",
            ])
        #expect(
            actions[.refreshToken] == [
                "API key is missing", "Token has expired 5 seconds ago", "Fields `role` and `exp` are required in JWT",
                "Token expiration time is invalid", "The token provided is not a valid JWT",
                "Failed to validate JWT signature", "The issuer (iss) of the token is not accepted here",
                "The audience (aud) of the token is not this service",
                "The claim `role` of the token has a character U+0000, which no role of Postgres has; issue another token",
            ])
    }

    @Test func onlyWhatPassesIsTriedAgainOfStreams() {
        #expect(Self.problems.filter { Refusal.stream($0).nextAction == .retry } == [.full, .unavailable])
        #expect(Self.problems.allSatisfy { Refusal.stream($0).nextAction != .refreshToken })
    }

    @Test func whoeverIsKeptOutForAWhileTriesAgain() {
        #expect(Refusal.removed(topic: "room1", seconds: 77).nextAction == .retry)
        #expect(Refusal.removed(topic: "room1", seconds: nil).nextAction == .giveUp)
    }

    /// What goes away by itself, or once somebody else is gone, is worth another try.
    @Test func limitsSayWhetherToTryAgain() {
        let retry = Limit.allCases.filter { Refusal.over($0, 77).nextAction == .retry }
        #expect(
            retry == [
                .connections, .connectionsPerAddress, .connectionsPerUser, .joinsPerSecond, .presencePerSecond,
            ])
        #expect(Limit.allCases.allSatisfy { Refusal.over($0, 77).nextAction != .refreshToken })
    }

    @Test(arguments: Limit.allCases) func limitsAreNamedWithTheirValue(_ limit: Limit) {
        #expect(Refusal.over(limit, 77).reason.contains("limits.\(limit.rawValue)"))
        #expect(Refusal.over(limit, 77).message.contains(" 77 "))
    }

    @Test(arguments: Limit.allCases) func limitsAreSettings(_ limit: Limit) throws {
        let root = Self.page.deletingLastPathComponent().deletingLastPathComponent()
        let file = root.appending(path: "config/roost.yaml")
        #expect(try String(contentsOf: file, encoding: .utf8).contains("\n  \(limit.rawValue): "))
    }

    /// RFC 6455, section 5.5: all there is in a close frame, less the code.
    @Test func theReasonOfACloseFits() {
        #expect(Refusal.over(.messageBytes, 268_435_456).message.utf8.count <= 123)
    }

    // MARK: docs/errors.md

    private static let page = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "docs/errors.md")

    /// The page's table `reason | message | next action` has a row for each refusal and no other. A part that varies is
    /// written in capitals (`N`, `X`) or as `…`.
    @Test func thePageListsExactlyThese() throws {
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        #expect(Self.rows(in: text).sorted() == Self.all.map(Self.row).sorted())
    }

    private static func rows(in page: String) -> [String] {
        var rows: [String] = []
        var isInside = false
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            let cells = line.split(separator: "|").map { cell in
                var text = cell.trimmingCharacters(in: .whitespaces)
                for fence in ["``", "`"]
                where text.hasPrefix(fence) && text.hasSuffix(fence) && text.count > 2 * fence.count {
                    text = String(text.dropFirst(fence.count).dropLast(fence.count)).trimmingCharacters(
                        in: .whitespaces)
                    break
                }
                return text
            }
            if cells.map({ $0.lowercased() }).starts(with: ["reason", "message", "next action"]) {
                isInside = true
            } else if !line.hasPrefix("|") {
                isInside = false
            } else if isInside, !line.hasPrefix("|-"), !line.hasPrefix("| -"), !line.hasPrefix("|:") {
                rows.append(cells.prefix(3).joined(separator: " | "))
            }
        }
        return rows
    }

    private static func row(_ refusal: Refusal) -> String {
        let (reason, message): (String, String) =
            switch refusal {
            case .tokenExpired:
                (
                    refusal.reason.replacingOccurrences(of: " 5 ", with: " N "),
                    refusal.message.replacingOccurrences(of: " 5 ", with: " N ")
                )
            case .unauthorized, .readRevoked, .writeUnauthorized, .trackUnauthorized, .removed:
                (
                    refusal.reason.replacing("room1", with: "X").replacing(" 77 ", with: " N "),
                    refusal.message.replacing("room1", with: "X").replacing(" 77 ", with: " N ")
                )
            case .changesTimeout:
                (refusal.reason.replacing("77ms", with: "Nms"), refusal.message.replacing("77ms", with: "Nms"))
            case .over, .presenceListFull, .stream:
                (
                    refusal.reason.replacing(" 77 ", with: " N ").replacing("a detail", with: "…"),
                    refusal.message.replacing(" 77 ", with: " N ").replacing("a detail", with: "…")
                )
            case .signer, .invalidBinding:
                (refusal.reason.replacingOccurrences(of: "a detail", with: "…"), "…")
            default: (refusal.reason, refusal.message)
            }
        return "\(reason) | \(message) | \(refusal.nextAction.rawValue)"
    }
}
