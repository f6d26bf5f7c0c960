import Listening
import Settings

/// The configuration of notifications as the room that listens takes it.
extension RoostConfiguration {
    /// What becomes of notifications; empty where none are listened to.
    func notificationMappings() throws(RunFailure) -> [NotificationMapping] {
        do {
            return try NotificationMapping.list(notifyChannels ?? "", privateOnly: privateOnly)
        } catch {
            throw RunFailure("\(subject("notify.channels")): \(error).", .configuration)
        }
    }
}
