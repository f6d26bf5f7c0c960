import FoundationEssentials
import Hub
import Notify
import Push
import Settings
import Stores
import Wire

/// The configuration of pushes in the form of the rooms that send them.
extension RoostConfiguration {
    /// The services that pushes go to; empty if the operator has configured none.
    func pushServices() throws -> [PushServiceConfiguration] {
        var services: [PushServiceConfiguration] = []
        if let apns = try apnsConfiguration() { services.append(.apns(apns)) }
        if let fcm = try fcm() { services.append(.fcm(fcm)) }
        if let web = try web() { services.append(.web(web)) }
        return services
    }

    /// Returns the configuration of APNs; nil if the operator has not configured it.
    func apnsConfiguration() throws -> APNsConfiguration? {
        push.topic == nil ? nil : try APNsConfiguration(self, for: "roost serve")
    }

    /// Returns the configuration of FCM; nil if the operator has not configured it.
    func fcm() throws -> FCMConfiguration? {
        guard let file = push.serviceAccount else { return nil }
        let text: [UInt8]
        do { text = try Array(Data(contentsOf: URL(filePath: file))) } catch {
            throw RunFailure("\(errorSubject("fcm.service_account")): \(file) cannot be read.", .configuration)
        }
        do {
            var fcm = FCMConfiguration(account: try ServiceAccount(json: text))
            fcm.url = push.fcmURL
            fcm.limits.caFile = try push.fcmCAFile.map { try certificates($0, "fcm.ca_file") }
            fcm.limits.queue = push.queue
            return fcm
        } catch let error as ServiceAccountError {
            throw RunFailure(
                "\(errorSubject("fcm.service_account")): \(file): \(error)", .configuration)
        }
    }

    /// Returns the configuration of browsers' push services; nil if the operator has not configured them.
    func web() throws(RunFailure) -> WebPushConfiguration? {
        guard let text = webPush.privateKey else { return nil }
        guard let whom = webPush.subject else {
            throw RunFailure(
                "\(errorSubject("web_push.private_key")) is set and web_push.subject is not: push services want to know whom they may "
                    + "write to, such as mailto:ops@example.com.", .configuration)
        }
        let key: VAPIDKey
        do throws(VAPIDKeyError) { key = try VAPIDKey(privateKey: text, subject: whom) } catch {
            throw RunFailure(
                "\(errorSubject(error == .key ? "web_push.private_key" : "web_push.subject")): \(error)", .configuration
            )
        }
        var web = WebPushConfiguration(
            key: key, rules: EndpointRules(networks: webPush.networks.compactMap { NetworkRange($0) }))
        web.limits.caFile = try webPush.caFile.map { file throws(RunFailure) in
            try certificates(file, "web_push.ca_file")
        }
        web.limits.queue = push.queue
        return web
    }

    /// - Returns: the file, if it contains certificates.
    func certificates(_ file: String, _ setting: String) throws(RunFailure) -> String {
        var problem: String?
        do {
            let text = String(decoding: try Data(contentsOf: URL(filePath: file)), as: UTF8.self)
            if !text.contains("-----BEGIN CERTIFICATE-----") { problem = "has no certificate" }
        } catch {
            problem = "cannot be read"
        }
        guard let problem else { return file }
        throw RunFailure(
            "\(errorSubject(setting)): \(file) \(problem); name a file with certificates in PEM, or "
                + "leave it out for the system's.", .configuration)
    }

    var pushEnvironment: PushEnvironment { PushEnvironment(rawValue: push.environment) ?? .production }

    /// - Parameters:
    ///   - bundle: the app's bundle ID.
    ///   - audience, facts, badge: statements for settings that the configuration lacks.
    func pushRules(
        bundle: String, audience: String?, facts: String?, badge: String? = nil
    ) throws(RunFailure) -> PushRules {
        let alert = try alertTemplate
        var rules = PushRules(
            node: nodeName, bundle: bundle, environment: pushEnvironment, tables: Set(push.alertTables),
            audience: push.audience ?? audience, facts: push.facts ?? facts, alert: alert,
            preview: Preview(limit: push.previewCharacters), alertLife: Int64(push.alertHours) * 3_600_000,
            activity: try activityRules, topic: try textTemplate(push.activityTopic, "live_activity.topic"),
            restartWindow: Int64(restartSeconds) * 1000, refresh: Int64(push.factsSeconds) * 1000)
        rules.condition = AlertCondition(rawValue: push.alertWhen) ?? .unseen
        rules.devices = AlertDevices(rawValue: push.alertDevices) ?? .together
        rules.proof = Int64(push.alertProofSeconds) * 1000
        rules.timed = try timedSources()
        rules.reading = readPositions
        rules.badge = push.badge ?? badge
        rules.badgePause = 60_000 / Int64(push.badgesPerMinute)
        rules.tokens = push.tokens
        rules.android.channel = push.androidChannel
        rules.android.isDataOnly = push.isDataOnly
        rules.templates = try alertTemplates(otherwise: alert)
        return rules
    }

    /// Nil if no table stores how far users have read.
    private var readPositions: ReadPositions? {
        guard !push.readPositions.isEmpty else { return nil }
        var columns: [Name: Name] = [:]
        for position in push.readPositions {
            let parts = position.split(separator: ".")
            columns[Name(parts.dropLast().joined(separator: "."))] = parts.last.map { Name(String($0)) }
        }
        return ReadPositions(
            columns: columns, user: Name(push.readUser), conversation: Name(push.readConversation),
            message: Name(push.readMessage))
    }

    /// The columns with the times at which their rows are pushed.
    func timedSources() throws(RunFailure) -> [TimedSource] {
        do {
            return try TimedSource.list(push.timed ?? "")
        } catch {
            throw RunFailure("\(errorSubject("alerts.timed")): \(error).", .configuration)
        }
    }

    /// The alert templates of single tables.
    private func alertTemplates(otherwise general: AlertTemplate) throws(RunFailure) -> [Name: AlertTemplate] {
        guard let sections = push.templates else { return [:] }
        do {
            return try AlertTemplate.sections(of: sections, otherwise: general)
        } catch {
            throw RunFailure("\(errorSubject("alerts.templates")): \(error).", .configuration)
        }
    }

    private var alertTemplate: AlertTemplate {
        get throws(RunFailure) {
            AlertTemplate(
                title: try alertLine(push.title, push.titleKey, push.titleArguments, "alerts.title"),
                body: try alertLine(push.body, push.bodyKey, push.bodyArguments, "alerts.body"),
                sound: try textTemplate(push.sound, "alerts.sound"))
        }
    }

    private func alertLine(
        _ text: String, _ key: String?, _ arguments: [String], _ setting: String
    ) throws(RunFailure) -> AlertTextTemplate {
        guard let key else { return .text(try textTemplate(text, setting)) }
        var templates: [TextTemplate] = []
        for argument in arguments { templates.append(try textTemplate(argument, setting + "_arguments")) }
        return .localized(key: key, arguments: templates)
    }

    private func textTemplate(_ text: String, _ setting: String) throws(RunFailure) -> TextTemplate {
        do {
            return try TextTemplate(text)
        } catch {
            throw RunFailure("\(errorSubject(setting)): \(error).", .configuration)
        }
    }

    private var activityRules: ActivityRules {
        get throws(RunFailure) {
            let content: ContentTemplate
            do {
                content = try ContentTemplate(push.activityState, preview: Preview(limit: push.previewCharacters))
            } catch {
                throw RunFailure("\(errorSubject("live_activity.content_state")): \(error).", .configuration)
            }
            var rules = ActivityRules(content: content)
            rules.quiet = Int64(push.debounceMilliseconds)
            rules.ceiling = Int64(push.ceilingMilliseconds)
            rules.staleAfter = Int64(push.staleMinutes) * 60
            rules.lifetime = Int64(push.activityHours) * 3_600_000
            return rules
        }
    }
}

extension APNsConfiguration {
    /// Takes the key, the address and the queue from the configuration.
    ///
    /// - Parameter command: the command that needs it, for the error about missing settings.
    init(_ configuration: RoostConfiguration, for command: String) throws {
        let settings = configuration.push
        guard let key = settings.key else {
            throw RunFailure(
                "\(command) needs apns.topic, apns.team_id, apns.key_id and apns.private_key: set them in the "
                    + "configuration file, or as ROOST_APNS_… environment variables.", .configuration)
        }
        do {
            self.init(key: try ProviderKey(teamID: key.team, keyID: key.id, pem: key.pem))
        } catch {
            throw RunFailure("\(configuration.errorSubject(error.setting)): \(error)", .configuration)
        }
        url = settings.url
        sandboxURL = settings.sandboxURL
        limits.caFile = try settings.caFile.map { try configuration.certificates($0, "apns.ca_file") }
        limits.queue = settings.queue
    }
}

extension ProviderKeyError {
    /// The setting that is wrong.
    fileprivate var setting: String {
        switch self {
        case .team: "apns.team_id"
        case .keyID: "apns.key_id"
        case .empty, .notPEM, .unusable: "apns.private_key"
        }
    }
}
