import Listening
import Settings

/// The configuration of notifications in the form of the listener.
extension RoostConfiguration {
    /// The mappings of notifications; empty without channels to listen to.
    func notificationMappings() throws(RunFailure) -> [NotificationMapping] {
        do {
            return try NotificationMapping.parseList(notifyChannels ?? "", privateOnly: privateOnly)
        } catch {
            throw RunFailure("\(errorSubject("notify.channels")): \(error).", .configuration)
        }
    }
}
