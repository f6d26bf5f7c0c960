import Glibc
import Push
import Settings

extension APNsConfiguration {
    /// What the configuration says of APNs.
    ///
    /// - Parameter command: who needs it, for the sentence that says what is missing.
    init(_ settings: PushSettings, for command: String) throws {
        guard let key = settings.key else {
            throw RunFailure(
                "\(command) needs apns.topic, apns.team_id, apns.key_id and apns.private_key: set them in the "
                    + "configuration file, or as ROOST_APNS_… environment variables.", .configuration)
        }
        do {
            self.init(key: try ProviderKey(teamID: key.team, keyID: key.id, pem: key.pem))
        } catch {
            throw RunFailure("\(error)", .configuration)
        }
        if let file = settings.caFile, access(file, R_OK) != 0 {
            throw RunFailure(
                "apns.ca_file: \(file) cannot be read (\(String(cString: strerror(errno)))); name a file with certificates "
                    + "in PEM, or leave it out for the system's.", .configuration)
        }
        url = settings.url
        caFile = settings.caFile
        queue = settings.queue
    }
}
