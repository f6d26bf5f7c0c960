package import Hub

/// One kind of push service, as `Sender` has to know it: where it is, how requests to it are written and authorized, and what its answers
/// mean. All else is the same for all kinds, and `Sender`'s: lanes and their order, retries and pauses, connections, at most once, counts.
///
/// How a kind is added
///   - A struct that conforms, in a folder of its own beside `APNs/` and `FCM/`; it is pure: it has no clock, no socket and no thread. Times
///     are passed in, and all methods are called on the client's thread.
///   - A case of `PushServiceConfiguration`, which makes the dialect.
///   - A server's name: a case of `ServerName`. Each server has connections, pauses and a circuit breaker of its own.
///   - How a message is rendered: `AlertPayload.fitted(for:)` and `ActivityPayload.bytes(for:)` switch over `PushKind`. What is of one device
///     alone (its token, its encryption) is added by `request(for:…)`.
///
/// Invariants
///   - `request` may be asked for the same notification again; it never has side effects.
///   - Nothing here retries, waits or counts: a verdict says what follows, and `Sender` does it.
protocol PushDialect: Sendable {
    var limits: PushLimits { get }
    /// Whether there are two servers, one of which knows a token, and that are told apart by asking (`ServerName.counterpart`).
    var hasTwoHosts: Bool { get }

    // MARK: Where

    /// The URL that a connection is opened to: `https://HOST[:PORT]`.
    func origin(of server: ServerName) -> String
    /// A server in the sentences of the log, such as "APNs (sandbox)".
    func title(of server: ServerName) -> String

    /// Which addresses may be connected to, where strangers say the URLs; nil for all.
    var endpointRules: EndpointRules? { get }
    /// Whether a server is anybody's, as far as is known: such ones get no more than a share of what there is (`StrangerLimits`).
    func isStranger(_ server: ServerName, wasReached: Bool) -> Bool

    // MARK: Requests

    /// What becomes of a notification that the service would certainly refuse; nil where it can be sent.
    func outcomeUnsent(_ push: Push) -> PushOutcome?
    /// What a request to a server is authorized with now; nil where that is being fetched (`credentialRequest`), and all waits for it.
    ///
    /// - Throws: where it cannot be signed, which a later attempt may do.
    mutating func authorization(for server: ServerName, at now: HubTime) throws -> PushAuthorization?
    /// The request of a notification. Nil where it cannot be written, such as because what it is encrypted with is no key: it ends
    /// `.badToken`.
    func request(for push: Push, authorizedBy authorization: PushAuthorization, at now: HubTime) -> PushRequest?

    // MARK: Answers

    /// The answer with what its body says: the reason, and the moment since which a token is none.
    func read(_ answer: Answer) -> Answer
    func verdict(on answer: Answer) -> AnswerVerdict
    /// The name under which a refusal is counted. Bounded: a metric must not have as many names as a server cares to make up.
    func countedName(of answer: Answer) -> String
    /// Whether an answer that refuses the key concerns one device alone, which is known by another key, and says nothing of the others.
    var refusalsConcernOneDevice: Bool { get }
    /// A shorter form of a payload, for a service that takes less than it should; nil where there is none.
    func shortened(_ payload: [UInt8]) -> [UInt8]?
    /// The authorization of that generation was found too old.
    ///
    /// - Returns: whether the next one is another, so that it is worth to try again.
    mutating func expire(_ generation: Int, by answer: Answer, of server: ServerName, at now: HubTime) -> Bool
    /// What the authorization comes from, in a sentence: "key ABC of team DEF".
    var keyName: String { get }
    /// What the operator is to do when nothing is taken that is sent with the key; a clause that ends with a full stop.
    func advice(on answer: Answer, at unix: Int64) -> String

    // MARK: Credentials that are fetched

    /// The request that fetches the next credential, if it is time to; nothing is asked twice before `take(credential:)`. A connection is made
    /// for it alone.
    mutating func credentialRequest(at now: HubTime) throws -> (server: ServerName, request: PushRequest)?
    /// What the request came to: nil where there was no answer.
    mutating func take(credential answer: Answer?, at now: HubTime) -> CredentialVerdict
    /// When `credentialRequest` has something, in monotonic milliseconds; nil for never.
    func nextCredential(at now: HubTime) -> Int64?

    /// How many credentials were made or fetched.
    var credentialsMade: Int { get }
    /// How old the one in use is, in milliseconds; nil where there is none.
    func credentialAge(at now: HubTime) -> Int64?
}

extension PushDialect {
    var hasTwoHosts: Bool { false }
    var endpointRules: EndpointRules? { nil }
    func isStranger(_ server: ServerName, wasReached: Bool) -> Bool { false }
    var refusalsConcernOneDevice: Bool { false }
    func shortened(_ payload: [UInt8]) -> [UInt8]? { nil }
    mutating func credentialRequest(at now: HubTime) throws -> (server: ServerName, request: PushRequest)? { nil }
    mutating func take(credential answer: Answer?, at now: HubTime) -> CredentialVerdict { .later(why: "") }
    func nextCredential(at now: HubTime) -> Int64? { nil }
}

/// What a request is authorized with: the value of its header, as the kind writes it.
struct PushAuthorization: Sendable {
    let text: String
    /// The number of the credential among those of this process, from 1.
    let generation: Int
}

/// What came of fetching a credential.
enum CredentialVerdict: Equatable {
    case good
    /// It is tried again (`nextCredential`).
    case later(why: String)
    /// The key is not taken: nothing can be sent before the operator does something.
    case refused(reason: String, advice: String)
}

/// What a client takes and waits for, whatever its kind.
package struct PushLimits: Sendable {
    /// Certificates, in PEM, to trust instead of the system's.
    package var caFile: String?
    /// The most notifications that wait or are in flight.
    package var queue = 10_000
    /// Connections to each server.
    package var connections = 1
    /// Connections to all servers together.
    package var mostConnections = Int.max
    /// The most requests in flight on one connection; the peer's SETTINGS may allow fewer.
    package var inFlight = 500
    package var connectTimeout: Duration = .seconds(10)
    /// How long an answer may take, from when the request left.
    package var answerTimeout: Duration = .seconds(20)
    /// How long a connection may take to answer a ping.
    package var pingTimeout: Duration = .seconds(5)
    /// After how long an idle connection is pinged (Apple: an hour).
    package var idlePing: Duration = .seconds(3600)
    /// Whether notifications wait, until their deadline, when the service refuses the key. Otherwise they end
    /// `.refused`, which is for whoever sends by hand.
    package var waitsWhenKeyIsRefused = true

    package init() {}
}

/// How one service is reached, by its kind.
package enum PushServiceConfiguration: Sendable {
    case apns(APNsConfiguration)
    case fcm(FCMConfiguration)
    case web(WebPushConfiguration)

    package var kind: PushKind {
        switch self {
        case .apns: .apns
        case .fcm: .fcm
        case .web: .web
        }
    }

    package var limits: PushLimits {
        get {
            switch self {
            case .apns(let apns): apns.limits
            case .fcm(let fcm): fcm.limits
            case .web(let web): web.limits
            }
        }
        set {
            switch self {
            case .apns(var apns):
                apns.limits = newValue
                self = .apns(apns)
            case .fcm(var fcm):
                fcm.limits = newValue
                self = .fcm(fcm)
            case .web(var web):
                web.limits = newValue
                self = .web(web)
            }
        }
    }

    /// How browsers are reached, if it is that.
    package var web: WebPushConfiguration? { if case .web(let web) = self { web } else { nil } }

    var dialect: any PushDialect {
        switch self {
        case .apns(let apns): APNsDialect(apns)
        case .fcm(let fcm): FCMDialect(fcm)
        case .web(let web): WebPushDialect(web)
        }
    }
}
