import FoundationEssentials
import Push
import Settings

extension APNsConfiguration {
    /// What the configuration says of APNs.
    ///
    /// - Parameter command: who needs it, for the sentence that says what is missing.
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
            throw RunFailure("\(configuration.subject(error.setting)): \(error)", .configuration)
        }
        if let file = settings.caFile, let problem = Self.problem(withCertificates: file) {
            throw RunFailure(
                "\(configuration.subject("apns.ca_file")): \(file) \(problem); name a file with certificates in PEM, or "
                    + "leave it out for the system's.", .configuration)
        }
        url = settings.url
        caFile = settings.caFile
        queue = settings.queue
    }

    private static func problem(withCertificates file: String) -> String? {
        do {
            let text = String(decoding: try Data(contentsOf: URL(filePath: file)), as: UTF8.self)
            return text.contains("-----BEGIN CERTIFICATE-----") ? nil : "has no certificate"
        } catch {
            return "cannot be read"
        }
    }
}

extension ProviderKeyError {
    /// The key of what is wrong.
    fileprivate var setting: String {
        switch self {
        case .team: "apns.team_id"
        case .keyID: "apns.key_id"
        case .empty, .notPEM, .unusable: "apns.private_key"
        }
    }
}
