package import Hub

/// One kind of push service, as far as `Sender` has to know it: its address, the form and authorization of its requests, and the
/// meaning of its answers. Everything else is the same for all kinds and belongs to `Sender`: lanes and their order, retries and
/// pauses, connections, at-most-once, counts.
///
/// Adding a kind
///   - A struct that conforms, in a folder of its own beside `APNs/` and `FCM/`; it is pure: it has no clock, no socket and no thread.
///     Times are passed in, and all methods are called on the client's thread.
///   - A case of `PushServiceConfiguration`, which makes the dialect.
///   - A server's name: a case of `ServerName`. Each server has connections, pauses and a circuit breaker of its own.
///   - The rendering of a message: `AlertPayload.fitted(for:)` and `ActivityPayload.bytes(for:)` switch over `PushKind`. The parts that
///     depend on the one device (its token, its encryption) are added by `request(for:…)`.
///
/// Invariants
///   - `request` may be called for the same notification again; it never has side effects.
///   - Nothing here retries, waits or counts: a verdict states the consequence, and `Sender` acts on it.
protocol PushDialect: Sendable {
    var limits: PushLimits { get }
    /// Whether there are two servers, one of which knows a token, and only an attempt shows which (`ServerName.counterpart`).
    var hasTwoHosts: Bool { get }

    // MARK: Servers

    /// The URL that a connection is opened to: `https://HOST[:PORT]`.
    func origin(of server: ServerName) -> String
    /// The name of a server in log messages, such as "APNs (sandbox)".
    func title(of server: ServerName) -> String

    /// The addresses that may be connected to, if clients name the URLs; nil allows all.
    var endpointRules: EndpointRules? { get }
    /// Whether a server could be anyone's, as far as is known: all such servers get no more than a share of the resources
    /// (`StrangerLimits`).
    func isStranger(_ server: ServerName, wasReached: Bool) -> Bool

    // MARK: Requests

    /// Returns the outcome of a notification that the service would certainly refuse; nil if it can be sent.
    func outcomeUnsent(_ push: Push) -> PushOutcome?
    /// Returns the present authorization for requests to a server; nil while it is being fetched (`credentialRequest`), and everything
    /// waits for it.
    ///
    /// - Throws: if it cannot be signed; a later attempt may succeed.
    mutating func authorization(for server: ServerName, at now: HubTime) throws -> PushAuthorization?
    /// Returns the request for a notification; nil if it cannot be written, for example because its encryption key is invalid: the
    /// notification ends `.badToken`.
    func request(for push: Push, authorizedBy authorization: PushAuthorization, at now: HubTime) -> PushRequest?

    // MARK: Answers

    /// Returns the answer with the contents of its body: the reason, and the moment since which a token is invalid.
    func read(_ answer: Answer) -> Answer
    func verdict(on answer: Answer) -> AnswerVerdict
    /// The name under which a refusal is counted. The names are bounded: a server must not be able to create any number of them in a
    /// metric.
    func countedName(of answer: Answer) -> String
    /// Whether an answer that refuses the key concerns one device alone, which subscribed with another key, and says nothing about the
    /// others.
    var refusalsConcernOneDevice: Bool { get }
    /// Returns a shorter form of a payload, for a service that accepts less than it should; nil if there is none.
    func shortened(_ payload: [UInt8]) -> [UInt8]?
    /// Notes that the authorization of this generation was found too old.
    ///
    /// - Returns: whether the next one is different, so that trying again is worthwhile.
    mutating func expire(_ generation: Int, by answer: Answer, of server: ServerName, at now: HubTime) -> Bool
    /// The source of the authorization, for log messages: "key ABC of team DEF".
    var keyName: String { get }
    /// Advises the operator when nothing sent with the key is accepted; a clause that ends with a full stop.
    func advice(on answer: Answer, at unix: Int64) -> String

    // MARK: Fetched credentials

    /// Returns the request that fetches the next credential, if it is due; there is no second one before `take(credential:)`. It gets a
    /// connection of its own.
    mutating func credentialRequest(at now: HubTime) throws -> (server: ServerName, request: PushRequest)?
    /// Takes the answer to the request: nil if there was none.
    mutating func take(credential answer: Answer?, at now: HubTime) -> CredentialVerdict
    /// The time of the next `credentialRequest`, in monotonic milliseconds; nil for never.
    func nextCredential(at now: HubTime) -> Int64?

    /// The number of credentials made or fetched.
    var credentialsMade: Int { get }
    /// Returns the age of the credential in use, in milliseconds; nil if there is none.
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

/// The authorization of a request: the value of its header, in the format of the kind.
struct PushAuthorization: Sendable {
    let text: String
    /// The credential's number among those of this process, from 1.
    let generation: Int
}

/// The result of fetching a credential.
enum CredentialVerdict: Equatable {
    case good
    /// Another attempt follows (`nextCredential`).
    case later(why: String)
    /// The key is refused: nothing can be sent before the operator acts.
    case refused(reason: String, advice: String)
}

/// The limits and timeouts of a client, whatever its kind.
package struct PushLimits: Sendable {
    /// Certificates to trust instead of the system's, in PEM.
    package var caFile: String?
    /// The maximum number of notifications that wait or are in flight.
    package var queue = 10_000
    /// Connections to each server.
    package var connections = 1
    /// Connections to all servers together.
    package var mostConnections = Int.max
    /// The maximum number of requests in flight on one connection; the peer's SETTINGS may allow fewer.
    package var inFlight = 500
    package var connectTimeout: Duration = .seconds(10)
    /// The longest wait for an answer, from the time when the request left.
    package var answerTimeout: Duration = .seconds(20)
    /// The longest wait for the answer to a ping.
    package var pingTimeout: Duration = .seconds(5)
    /// The idle time after which a connection is pinged (Apple: an hour).
    package var idlePing: Duration = .seconds(3600)
    /// Whether notifications wait, until their deadline, when the service refuses the key. Otherwise they end `.refused`, which suits
    /// manual sending.
    package var waitsWhenKeyIsRefused = true

    package init() {}
}

/// The configuration of one service, by its kind.
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

    /// The configuration for browsers, if this is one.
    package var web: WebPushConfiguration? { if case .web(let web) = self { web } else { nil } }

    var dialect: any PushDialect {
        switch self {
        case .apns(let apns): APNsDialect(apns)
        case .fcm(let fcm): FCMDialect(fcm)
        case .web(let web): WebPushDialect(web)
        }
    }
}
